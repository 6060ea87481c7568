"""Models of a replay: stand-ins that play what was recorded, or one model in the place of all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeAlias, cast

from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import Model, ModelEvent, ModelRequest
from thinkwell.models.resolve import ModelLike, ModelPool

Play: TypeAlias = Callable[[Model, ModelRequest, AbortSignal], AsyncIterator[ModelEvent]]
"""Says what was said in the next call."""


class RecordedModel:
    """Stands for a model that the agent's code names, and says what was recorded."""

    def __init__(self, play: Play, name: tuple[str, str], *, native: bool) -> None:
        self._play = play
        self.provider, self.model_id = name
        self.supports_response_format = native

    def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Play the next recorded call."""
        return self._play(self, request, signal)

    def resume(
        self,
        token: Mapping[str, Any],  # noqa: ARG002 - there is one answer to take up
        request: ModelRequest,
        signal: AbortSignal,
    ) -> AsyncIterator[ModelEvent]:
        """Play the rest of an answer that the provider kept: the next recorded call."""
        return self._play(self, request, signal)

    async def cancel(self, token: Mapping[str, Any]) -> None:
        """Nobody is to be told in a replay."""


class ReplayPool(ModelPool):
    """Every model is the recorded one, or the one that is tried instead."""

    def __init__(self, play: Play, *, native: bool, instead: ModelLike = None) -> None:
        super().__init__()
        self._play = play
        self._native = native
        """Whether the recorded model could be asked for JSON of a schema."""
        self._instead = instead

    def resolve(self, like: ModelLike) -> Model:
        """The model that stands for `like`. Nothing is contacted, and no key is needed."""
        if self._instead is not None:
            return super().resolve(self._instead)
        return RecordedModel(self._play, _name_of(like), native=self._native)

    async def load(self, like: ModelLike) -> Model:
        """The same."""
        if self._instead is not None:
            return await super().load(self._instead)
        return self.resolve(like)


def _name_of(like: Any) -> tuple[str, str]:
    """Provider and name of what the agent's code calls its model; a list begins with the first."""
    first: Any = like
    if isinstance(like, list | tuple) and like:
        first = cast("list[Any]", like)[0]
    if isinstance(first, str):
        provider, _, model_id = first.removeprefix("pydantic-ai/").partition(":")
        return provider, model_id or provider
    return str(getattr(first, "provider", "")), str(getattr(first, "model_id", ""))
