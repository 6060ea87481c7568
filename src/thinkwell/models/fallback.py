"""A chain of models: the next one is asked when one fails before it said anything.

Once content has reached the listener an answer cannot be taken back, so a failure after that is
told as it is. Which errors are worth retrying with the same model is decided in `turn`, not here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import Failure, Model, ModelEvent, ModelRequest


class FallbackModel:
    """Asks its models in order until one begins to answer."""

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ConfigurationError(
                'A fallback chain needs a model: model = ["openai-chat:a", "openai-chat:b"]'
            )
        self.models = tuple(models)
        """The chain, first choice first."""

    @property
    def provider(self) -> str:
        """The provider of the first choice."""
        return self.models[0].provider

    @property
    def model_id(self) -> str:
        """The first choice."""
        return self.models[0].model_id

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        failure: Failure | None = None
        for model in self.models:
            if signal.aborted:
                return
            failure = None
            answered = False
            events = model.stream(request, signal)
            try:
                async for event in events:
                    if isinstance(event, Failure) and not answered:
                        failure = event
                        break
                    answered = True
                    yield event
            finally:
                # A generator that is left in the middle keeps its connection until it is
                # collected.
                await _close(events)
            if failure is None:
                return
        if failure is not None:
            yield failure

    async def aclose(self) -> None:
        """Close the connections of every model in the chain."""
        for model in self.models:
            await close_model(model)


async def close_model(model: Model) -> None:
    """Close a model's connections, if it keeps any."""
    await _close(model)


async def _close(owner: object) -> None:
    close = getattr(owner, "aclose", None)
    if close is not None:
        await close()
