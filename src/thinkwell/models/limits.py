"""How much may be asked of a model: `ModelLimits`, and the decision about one call (pure).

Requests and tokens are buckets that hold a minute's worth and fill up steadily, as providers count
them too. A call's tokens are estimated when it begins and corrected when the provider has said how
many there were, so a bucket may be overdrawn for a while. A provider that refuses because of its
own limits pauses everybody; after the pause one call goes ahead, and the others follow once it has
been answered.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.named_fields import NamedFields
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ReasoningContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from thinkwell.models.base import ModelRequest

MINUTE: Final = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds everybody waits after a refusal that does not say how long; doubled each time. However
long a provider asks for, one call tries again after the longest."""
_CHARACTERS_PER_TOKEN = 4

WaitReason: TypeAlias = Literal["parallel", "requests", "tokens", "provider", "turn"]
"""Why a call waits: for the end of another call, for either bucket, because the provider has
refused one, or because others were there first (`turn`)."""


class ModelLimits(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedFields):
    """How much all agents of this process together may ask of a model. None: no limit.

    Without any number only the provider's own limits count: what it refuses pauses everybody.
    """

    requests_per_minute: float | None = None
    """Calls; as many at once after a quiet minute."""
    tokens_per_minute: float | None = None
    """Input and output together."""
    parallel: int | None = None
    """Calls that run at the same time."""
    when_full: Literal["wait", "next", "error"] = "wait"
    """What a call does that cannot begin now: wait for its turn; let the next model of a fallback
    chain answer (the last one waits); or fail."""
    per: Literal["model", "key"] = "model"
    """Whether each model of each API key has these limits, or all models of a key share them."""

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "parallel"):
            value = cast("object", getattr(self, name))
            whole = int if name == "parallel" else int | float
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, whole) or not value > 0:
                raise ConfigurationError(
                    f"ModelLimits({name}={value!r}) is no limit. Give a number above 0, or None "
                    "for no limit."
                )
        for name, words in (("when_full", ("wait", "next", "error")), ("per", ("model", "key"))):
            if getattr(self, name) not in words:
                said = ", ".join(f'"{word}"' for word in words)
                raise ConfigurationError(
                    f"ModelLimits({name}={getattr(self, name)!r}) is unknown. Write one of {said}."
                )


class Hold(msgspec.Struct, frozen=True):
    """A call cannot begin now."""

    reason: WaitReason
    until: float | None = None
    """When to look again; None: when another call has ended."""


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of some limits."""

    requests: float
    tokens: float
    at: float
    """When these two were so many."""
    running: int = 0
    paused_until: float = 0.0
    refusals: int = 0
    """By the provider, in a row."""
    trying: bool = False
    """After a pause: whether the call that goes ahead is on its way."""

    @classmethod
    def full(cls, limits: ModelLimits, now: float) -> Allowance:
        """Before the first call."""
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        return cls(requests=requests or 0.0, tokens=tokens or 0.0, at=now)

    def later(self, limits: ModelLimits, now: float) -> Allowance:
        """The same at another time: the buckets have filled up meanwhile."""
        passed = max(now - self.at, 0.0) / MINUTE
        return msgspec.structs.replace(
            self,
            requests=_filled(self.requests, limits.requests_per_minute, passed),
            tokens=_filled(self.tokens, limits.tokens_per_minute, passed),
            at=max(now, self.at),
        )

    def hold(self, limits: ModelLimits, now: float, tokens: float) -> Hold | None:
        """Why a call of so many tokens cannot begin now; None if it can."""
        if now < self.paused_until:
            return Hold("provider", self.paused_until)
        if self.refusals and self.trying:
            return Hold("provider")
        if limits.parallel is not None and self.running >= limits.parallel:
            return Hold("parallel")
        left = self.later(limits, now)
        if limits.requests_per_minute is not None:
            # A limit below one call a minute still lets one through in the end.
            needed = min(1.0, limits.requests_per_minute)
            if left.requests < needed:
                missing = (needed - left.requests) / limits.requests_per_minute
                return Hold("requests", now + missing * MINUTE)
        if limits.tokens_per_minute is not None:
            # A call that is larger than the bucket begins when the bucket is full.
            needed = min(tokens, limits.tokens_per_minute)
            if left.tokens < needed:
                missing = (needed - left.tokens) / limits.tokens_per_minute
                return Hold("tokens", now + missing * MINUTE)
        return None

    def begun(self, limits: ModelLimits, now: float, tokens: float) -> Allowance:
        """After a call has begun."""
        left = self.later(limits, now)
        return msgspec.structs.replace(
            left,
            requests=left.requests - (0.0 if limits.requests_per_minute is None else 1.0),
            tokens=left.tokens - (0.0 if limits.tokens_per_minute is None else tokens),
            running=self.running + 1,
            trying=bool(self.refusals),
        )

    def ended(self, limits: ModelLimits, now: float, more: float) -> Allowance:
        """After a call has ended that took so many more tokens than was thought."""
        left = self.later(limits, now)
        more = 0.0 if limits.tokens_per_minute is None else more
        return msgspec.structs.replace(
            left, tokens=left.tokens - more, running=max(self.running - 1, 0)
        )

    def tried(self, *, answered: bool) -> Allowance:
        """The call that went ahead has its answer, so that the others follow; or it has none."""
        refusals = 0 if answered else self.refusals
        return msgspec.structs.replace(self, refusals=refusals, trying=False)

    def refused(self, now: float, seconds: float | None) -> Allowance:
        """The provider refused a call because of its limits, and said when to come back."""
        # What was refused together counts once.
        refusals = self.refusals + (now >= self.paused_until)
        usual = FIRST_PAUSE * 2.0 ** min(refusals - 1, 10)
        pause = min(usual if seconds is None else seconds, LONGEST_PAUSE)
        until = max(self.paused_until, now + pause)
        return msgspec.structs.replace(self, paused_until=until, refusals=max(refusals, 1))

    def used_up(self, now: float, seconds: float) -> Allowance:
        """The provider answered, and said that nothing is left until then."""
        until = max(self.paused_until, now + min(seconds, LONGEST_PAUSE))
        return msgspec.structs.replace(self, paused_until=until)

    def at_rest(self, limits: ModelLimits, now: float) -> bool:
        """Whether it is as before the first call, so that nothing is lost if it is forgotten."""
        if self.running or self.refusals or now < self.paused_until:
            return False
        left = self.later(limits, now)
        full = Allowance.full(limits, now)
        return left.requests >= full.requests and left.tokens >= full.tokens


def _filled(level: float, limit: float | None, minutes: float) -> float:
    return level if limit is None else min(limit, level + limit * minutes)


def estimate_tokens(request: ModelRequest) -> float:
    """About how many tokens a request has. Files count nothing: only the provider knows."""
    characters = len(request.system) + sum(map(_length, request.messages))
    for tool in request.tools:
        characters += len(tool.description) + _size(tool.input_schema)
    return characters / _CHARACTERS_PER_TOKEN


def _length(message: SystemMessage | UserMessage | AssistantMessage | ToolMessage) -> int:
    if isinstance(message, SystemMessage):
        return len(message.content)
    total = 0
    for part in message.content:
        if isinstance(part, TextContent | ReasoningContent):
            total += len(part.text)
        elif isinstance(part, ToolCallContent):
            total += _size(part.input)
        elif isinstance(message, ToolMessage):
            total += _size(cast("Any", part).value)
    return total


def _size(value: Any) -> int:
    """The characters of a value, without encoding it."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return sum(len(str(key)) + 4 + _size(item) for key, item in given.items())
    if isinstance(value, list | tuple):
        return sum(1 + _size(item) for item in cast("list[Any]", value))
    return 4
