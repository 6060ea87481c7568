"""How the native adapters read a streamed answer: bytes in, model events out.

Owns the loop over the payloads of one call and their decoding; each provider's subclass says what
one payload means, and what the end does. Pure; connections, aborts and HTTP errors are
`provider_http.py`'s. Invariant: the events of `feed` and `end` together keep the contract of
`base.py`; the terminal event comes from `end`, or from `feed` when the provider reports an error
inside the stream.
"""

from __future__ import annotations

import json as stdlib_json
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from thinkwell.core import json
from thinkwell.models.base import Failure, ModelEvent
from thinkwell.models.provider_errors import unreadable
from thinkwell.models.sse import SsePayloads

DONE = b"[DONE]"


class AnswerStream:
    """The state of one streamed answer. `done` is true once nothing more is to be read."""

    frame: ClassVar[type[Any]]
    """What a payload is decoded as."""
    _decoder: ClassVar[msgspec.json.Decoder[Any]]
    mark_ends: ClassVar[bool] = False
    """Whether `[DONE]` is the end of the answer; elsewhere it says nothing."""

    def __init_subclass__(cls) -> None:
        """Each provider has a decoder of its own; subclasses that only add something share it."""
        if "frame" in vars(cls):
            cls._decoder = msgspec.json.Decoder(cls.frame)

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._payloads = SsePayloads()
        self.done = False
        self.failed = False

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        """The events of one socket chunk."""
        return self._read(self._payloads.feed(chunk))

    def end(self, headers: Mapping[str, str], warnings: tuple[str, ...]) -> list[ModelEvent]:
        """The last events, once the stream is over; the final one is terminal."""
        events = self._read(self._payloads.flush())
        if not self.failed:
            self._end(events, headers, warnings)
        return events

    def _take(self, event: Any, events: list[ModelEvent]) -> None:
        """What one payload means."""
        raise NotImplementedError

    def _end(
        self, events: list[ModelEvent], headers: Mapping[str, str], warnings: tuple[str, ...]
    ) -> None:
        """The stream is over: close what is open, then the terminal event."""
        raise NotImplementedError

    def _fail(self, error: Exception, events: list[ModelEvent]) -> None:
        self.done = self.failed = True
        events.append(Failure(error))

    def _read(self, payloads: list[bytes]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        decode, take = self._decoder.decode, self._take  # looked up once: this is the hot path
        for payload in payloads:
            if self.done:
                break
            if not payload:
                continue
            try:
                decoded = decode(payload)
            except ValueError as error:
                if payload == DONE:
                    self.done = self.mark_ends
                    continue
                decoded = self._mended(payload, error, events)
                if decoded is None:
                    break
            take(decoded, events)
        return events

    def _mended(self, payload: bytes, error: ValueError, events: list[ModelEvent]) -> Any:
        """A payload that msgspec refuses for half a surrogate pair (an emoji cut between two
        deltas); None, and a failure among the events, for one that nothing can be made of.
        """
        try:
            return msgspec.convert(json.to_jsonable(stdlib_json.loads(payload)), self.frame)
        except ValueError:
            self._fail(unreadable(self._provider, payload, error), events)
            return None
