"""A chain of models: the next one is asked when one fails before it said anything.

Once content has reached the listener an answer cannot be taken back, so a failure after that is
told as it is. Which errors are worth retrying with the same model is decided in `turn`, not here.
Why the chain moved on is logged, and is a warning of the answer's `Finish`. A model that keeps
failing is asked last for a while (`breaker.py`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

import msgspec

from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.errors import ConfigurationError, ModelBusyError, ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import (
    Bookmark,
    Failure,
    Finish,
    Model,
    ModelEvent,
    ModelRequest,
)
from thinkwell.models.breaker import Breaker
from thinkwell.models.error_classes import default_error_classifier
from thinkwell.models.gate import open_stream
from thinkwell.models.resumable import ResumableModel

log = logging.getLogger("thinkwell.models")


class FallbackModel:
    """Asks its models in order until one begins to answer."""

    asks_others = True
    """Limits hold for the models of the chain, one by one."""

    def __init__(self, models: Sequence[Model], *, clock: Clock | None = None) -> None:
        if not models:
            raise ConfigurationError(
                'A fallback chain needs a model: model = ["openai:a", "anthropic:b"]'
            )
        self.models = tuple(models)
        """The chain, first choice first."""
        self._clock = clock or SystemClock()
        self._breakers = [Breaker() for _ in models]

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
        reasons: list[str] = []
        failure: Failure | None = None
        order = self._order(reasons)
        for index in order:
            if signal.aborted:
                return
            failure = None
            answered = kept = False
            last = index == order[-1]
            events = open_stream(self.models[index], request, signal, last=last)
            self._breakers[index] = self._breakers[index].trying(self._clock.monotonic())
            try:
                async for event in events:
                    if isinstance(event, Failure) and not answered:
                        failure = event
                        break
                    # An answer that is kept is not yet an answer.
                    if not answered and not (isinstance(event, Bookmark) and event.event is None):
                        answered = True
                        self._breakers[index] = self._breakers[index].answered()
                    if isinstance(event, Bookmark):
                        kept = event.token is not None
                    yield self._told(index, event, reasons)
            finally:
                # A generator that is left in the middle keeps its connection until it is
                # collected.
                await _close(events)
            if failure is None:
                return
            self._note(index, failure.error, reasons)
            if kept and not last:  # another model answers: this answer is not taken up any more
                yield Bookmark(None)
        if failure is not None:
            yield failure

    def _told(self, index: int, event: ModelEvent, reasons: list[str]) -> ModelEvent:
        """An event of one model, as the chain tells it."""
        if isinstance(event, Finish):
            return _explained(event, self.models[index], reasons)
        return _of_model(index, event) if isinstance(event, Bookmark) else event

    async def resume(
        self, token: Mapping[str, Any], request: ModelRequest, signal: AbortSignal
    ) -> AsyncIterator[ModelEvent]:
        """Take up the kept answer of one of the models. See `ResumableModel`."""
        index, model = self._kept_by(token)
        if model is None:
            yield Bookmark(None)
            yield Failure(ModelError("The chain has no model any more that kept this answer."))
            return
        async with aclosing(cast("Any", model.resume(token["token"], request, signal))) as events:
            async for event in events:
                yield self._told(index, event, [])

    async def cancel(self, token: Mapping[str, Any]) -> None:
        """Tell the model that keeps the answer. See `ResumableModel`."""
        _, model = self._kept_by(token)
        if model is not None:
            await model.cancel(token["token"])

    def _kept_by(self, token: Mapping[str, Any]) -> tuple[int, ResumableModel | None]:
        # A model that became a chain by a deploy has left a bookmark that names no model.
        index = int(token.get("model", len(self.models)))
        model = self.models[index] if index < len(self.models) else None
        return index, model if isinstance(model, ResumableModel) else None

    def _order(self, reasons: list[str]) -> list[int]:
        """Whom to ask, in order: those that are left alone for now come last."""
        now = self._clock.monotonic()
        resting = [at for at, breaker in enumerate(self._breakers) if breaker.is_open(now)]
        ready = [at for at in range(len(self.models)) if at not in resting]
        if ready:
            names = [_name(self.models[at]) for at in resting]
            reasons.extend(f"{name} was asked last: it keeps failing" for name in names)
        return [*ready, *resting]

    def _note(self, index: int, error: Exception, reasons: list[str]) -> None:
        kind, name = default_error_classifier(error), _name(self.models[index])
        if isinstance(error, ModelBusyError):  # which is no fault of the model
            reasons.append(str(error))
            return
        breaker = self._breakers[index].failed(kind, self._clock.monotonic())
        self._breakers[index] = breaker
        reasons.append(f"{name} failed ({kind}): {error}")
        log.warning("%s failed (%s); the next model of the chain is asked: %s", name, kind, error)

    async def aclose(self) -> None:
        """Close the connections of every model in the chain."""
        for model in self.models:
            await close_model(model)


def _of_model(index: int, bookmark: Bookmark) -> Bookmark:
    """The bookmark of one model of the chain."""
    if bookmark.token is None:
        return bookmark
    return Bookmark({"model": index, "token": bookmark.token}, bookmark.event)


def _explained(finish: Finish, model: Model, reasons: list[str]) -> Finish:
    """Which model it was, for its price, and why not an earlier one."""
    name = finish.answered_by or _name(model)
    return msgspec.structs.replace(finish, answered_by=name, warnings=(*reasons, *finish.warnings))


def _name(model: Model) -> str:
    return f"{model.provider}:{model.model_id}"


async def close_model(model: Model) -> None:
    """Close a model's connections, if it keeps any."""
    await _close(model)


async def _close(owner: object) -> None:
    close = getattr(owner, "aclose", None)
    if close is not None:
        await close()
