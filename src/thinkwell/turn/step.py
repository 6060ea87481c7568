"""One step about to run: the model, its request, and the tools it may call."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from thinkwell.models.base import Model, ModelRequest
from thinkwell.tools.tool import Tool


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What `prepare_step` decided."""

    number: int
    model: Model
    request: ModelRequest
    tools: Mapping[str, Tool]
    """Only these may be called."""
