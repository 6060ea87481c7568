"""What a model may be able to do beyond `Model`: take up an answer that its provider keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, runtime_checkable

from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import Model, ModelEvent, ModelRequest


@runtime_checkable
class ResumableModel(Model, Protocol):
    """A model whose provider keeps answers: one that was cut goes on, and nothing is paid twice.

    Its `stream` says with a `Bookmark` that the answer is kept, and puts each event into another
    that says where to go on behind it. Optional: elsewhere the model is asked to go on after the
    text that was shown.
    """

    def resume(
        self, token: Mapping[str, Any], request: ModelRequest, signal: AbortSignal
    ) -> AsyncIterator[ModelEvent]:
        """Go on behind the last stored bookmark, with the rest of the same answer.

        Ends like `stream`. Where nothing can be taken up any more, it says so with
        `Bookmark(None)` before its `Failure`. `request` is what would be asked now; only its
        headers and time limits matter.
        """
        ...

    async def cancel(self, token: Mapping[str, Any]) -> None:
        """Nobody wants the answer any more: the provider may stop. Raises if it cannot be told."""
        ...
