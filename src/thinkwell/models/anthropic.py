"""The native adapter for Anthropic's messages API.

`anthropic_request.py` builds the body, `anthropic_stream.py` reads the answer, and
`provider_http.py` has the connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import msgspec

from thinkwell.core.signal import AbortSignal
from thinkwell.models.anthropic_messages import PROVIDER
from thinkwell.models.anthropic_request import build_body
from thinkwell.models.anthropic_stream import MessageStream
from thinkwell.models.base import ModelEvent, ModelRequest
from thinkwell.models.native import NativeModel, connect
from thinkwell.models.presets import look_up

VERSION = "2023-06-01"


class AnthropicModel(NativeModel):
    """A Claude model, or whatever else speaks Anthropic's messages API."""

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        cache: bool = True,
        native_output: bool = False,
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """`base_url` and `api_key` default to `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`.

        `cache` marks the prefix of every request for Anthropic's prompt cache. `native_output`
        binds structured output to its schema at Anthropic, which newer models can; without it,
        the model hands it over through a tool.
        """
        address = look_up(PROVIDER, model_id, base_url=base_url, api_key=api_key)
        sent = {"anthropic-version": VERSION, **(headers or {})}
        client = connect(
            PROVIDER, "/v1/messages", address, headers=sent, proxy=proxy, ca_file=ca_file
        )
        super().__init__(model_id, client)
        self.supports_response_format = native_output
        self._cache = cache

    def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        options = cast("Mapping[str, Any]", request.provider_options.get(PROVIDER) or {})
        if betas := options.get("betas"):
            headers = {"anthropic-beta": ",".join(betas), **request.headers}
            request = msgspec.structs.replace(request, headers=headers)
        return self._client.stream(self._build, MessageStream(), request, signal)

    def _build(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        return build_body(request, model_id=self.model_id, cache=self._cache)
