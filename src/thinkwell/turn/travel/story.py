"""What happened in a turn, told step by step: requests, replies, tools, decisions, attempts.

Pure: it is made of a case and says nothing that the journal does not say. What a call cost is in
the journal if its price was known then; whoever knows better hands in a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.money import NANO
from thinkwell.journal.events import (
    AttemptBegun,
    CallClaimed,
    CallSettled,
    HookDecided,
    JournalEvent,
    ModelAsked,
    ModelEnded,
    ModelFailed,
    ModelPaused,
    ModelResumed,
    OutsideAnswered,
    Said,
    StepReserved,
    WaitBegun,
    WaitOver,
    read_events,
)
from thinkwell.journal.prefix import BlockReader, CacheBreak, RequestBlocks, cache_break
from thinkwell.journal.reading import StoredJournal
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.usage import Usage
from thinkwell.models.base import ModelRequest
from thinkwell.turn.recorded_requests import LostRequest, RecordedRequest, requests_in
from thinkwell.turn.travel.case import Case

PriceFunction: TypeAlias = Callable[[str, str, Usage], float | None]
"""What a model call cost: provider, model and tokens in, an amount out; None if it is not known."""


class HookDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A hook answered something other than None."""

    event: str
    hook: str
    said: dict[str, Any]


class ToolUse(msgspec.Struct, kw_only=True, rename="camel"):
    """One tool call and what came of it."""

    call_id: str
    tool_name: str
    input: Any = None
    effect: str | None = None
    """None if the tool did not run here: a hook, a client or a person answered."""
    outcome: str | None = None
    """None while nothing came of it."""
    output: Any = None
    error: str | None = None
    at: float | None = None
    took_ms: float | None = None
    waits_for: str | None = None
    """`approval` or `client`, if it waited for an answer from outside at the end."""
    decisions: list[HookDecision] = msgspec.field(default_factory=list[HookDecision])


class ModelUse(msgspec.Struct, kw_only=True, rename="camel"):
    """One call of a model."""

    provider: str
    model: str
    attempt: int
    at: float
    took: float | None = None
    """Seconds until it had answered or failed; None if that is not written down."""
    waited: float = 0.0
    """Seconds it waited for the limits of its model before; no part of `took`."""
    waits_for: str | None = None
    """The limit it waits for now, or waited for when it was cut off, and why."""
    request: ModelRequest | None = None
    problem: str | None = None
    """Why the request does not come back."""
    finish_reason: str | None = None
    """None if it was cut off."""
    usage: Usage = msgspec.field(default_factory=Usage)
    error: str | None = None
    cost: float | None = None
    reserved: float | None = None
    """Dollars that were set aside for it, if a budget is in dollars."""
    reserved_tokens: int | None = None
    """Tokens that were set aside for it, if there is a budget."""
    cache_break: CacheBreak | None = None
    """What changed at the beginning of the request, so that the provider's cache was lost."""
    resumed: list[Resumption] = msgspec.field(default_factory=list["Resumption"])
    """When its answer was taken up again at the provider instead of asking once more."""


class Resumption(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An answer that the provider kept was taken up again."""

    attempt: int
    at: float
    changed: list[str] = []
    """What the code would have asked otherwise by then: `prompt`, `tools`, `model`."""


class StoryStep(msgspec.Struct, kw_only=True, rename="camel"):
    """One step: its model calls, what was said, and the tools."""

    number: int
    models: list[ModelUse] = msgspec.field(default_factory=list[ModelUse])
    reasoning: str = ""
    text: str = ""
    tools: list[ToolUse] = msgspec.field(default_factory=list[ToolUse])
    decisions: list[HookDecision] = msgspec.field(default_factory=list[HookDecision])


class TurnStory(msgspec.Struct, kw_only=True, rename="camel"):
    """Everything that is known of a turn."""

    turn: TurnRecord
    attempts: list[float] = msgspec.field(default_factory=list[float])
    """When each attempt began."""
    decisions: list[HookDecision] = msgspec.field(default_factory=list[HookDecision])
    """What hooks decided before the first step."""
    steps: list[StoryStep] = msgspec.field(default_factory=list[StoryStep])
    cost: float | None = None
    """What the model calls cost together, if all prices are known."""
    seconds: float | None = None
    """From its first attempt to its end."""


async def tell(
    case: Case,
    price: PriceFunction | None = None,
    earlier: tuple[str, StoredJournal] | None = None,
) -> TurnStory:
    """The story of a turn; `earlier` is the turn before it, whose requests it may go on from."""
    requests = await requests_in(case.journal, case.turn.message_id, case)
    teller = _Teller(case.turn, requests)
    for event in read_events(case.journal):
        teller.take(event)
    story = teller.story
    _name_breaks(teller.asked, last_request(earlier) if earlier is not None else None)
    if story.attempts and case.turn.settled_at is not None:
        story.seconds = case.turn.settled_at - story.attempts[0]
    uses = [use for step in story.steps for use in step.models]
    for use in uses:
        if price is not None:
            use.cost = price(use.provider, use.model, use.usage)
        elif use.usage.cost is not None:
            use.cost = float(use.usage.cost)
    known = [use.cost for use in uses if use.cost is not None]
    story.cost = sum(known) if known and len(known) == len(uses) else None
    return story


class LastRequest(msgspec.Struct, frozen=True):
    """The last request of an earlier turn."""

    turn: str
    blocks: RequestBlocks
    usage: Usage


def last_request(earlier: tuple[str, StoredJournal]) -> LastRequest | None:
    """The last request of a turn, by its id and its journal; None if it has none with hashes."""
    turn, journal = earlier
    blocks, found, usage = BlockReader(), None, Usage()
    for event in read_events(journal):
        if isinstance(event, ModelAsked):
            found, usage = blocks.read(event), Usage()
        elif isinstance(event, ModelEnded):
            usage = event.usage
    return None if found is None else LastRequest(turn, found, usage)


def _name_breaks(
    asked: Sequence[tuple[RequestBlocks | None, StoryStep, ModelUse]], before: LastRequest | None
) -> None:
    """Compare every request with the one before it, the first with the last of an earlier turn."""
    last = None if before is None else (before.blocks, before.usage)
    since = "" if before is None else before.turn
    for blocks, step, use in asked:
        if blocks is None:
            continue
        if last is not None:
            use.cache_break = cache_break(last, (blocks, use.usage), since)
        last, since = (blocks, use.usage), f"step {step.number}"


class _Teller:
    def __init__(self, turn: TurnRecord, requests: Sequence[RecordedRequest | LostRequest]) -> None:
        self.story = TurnStory(turn=turn)
        self._requests = list(requests)
        self._tools: dict[str, ToolUse] = {}
        self._reserved: StepReserved | None = None
        """What the model call that comes next has set aside."""
        self._blocks = BlockReader()
        self.asked: list[tuple[RequestBlocks | None, StoryStep, ModelUse]] = []
        """Every request with its hashes."""
        self._ahead: list[HookDecision] = []
        """What was decided about the step that comes next."""

    def take(self, event: JournalEvent) -> None:
        """The next thing that happened."""
        match event:
            case AttemptBegun():
                self.story.attempts.append(event.at)
            case ModelAsked():
                self._asked(event)
            case StepReserved() | WaitBegun() | WaitOver():
                self._waited(event)
            case ModelResumed() | ModelEnded() | ModelFailed() | ModelPaused():
                self._answered(event)
            case HookDecided():
                self._decided(event)
            case CallClaimed():
                use = self._tool(event.call_id, event.tool_name)
                use.effect, use.at = event.effect, event.at
            case CallSettled():
                use = self._tool(event.call_id)
                use.outcome, use.took_ms = event.outcome, event.took_ms
            case OutsideAnswered(part=part):
                self._take_part(part)
            case Said(chunk=chunk):
                self._said(chunk)
            case _:
                pass

    def _step(self, number: int | None = None) -> StoryStep:
        steps = self.story.steps
        if not steps or (number is not None and steps[-1].number < number):
            number = len(steps) if number is None else number
            steps.append(StoryStep(number=number, decisions=self._ahead))
            self._ahead = []
        return steps[-1]

    def _asked(self, event: ModelAsked) -> None:
        found = self._requests.pop(0)
        use = ModelUse(
            provider=event.provider,
            model=event.model,
            attempt=len(self.story.attempts),
            at=event.at,
        )
        if isinstance(found, RecordedRequest):
            use.request = found.request
        else:
            use.problem = found.problem
        if self._reserved is not None:
            use.reserved = self._reserved.nano_usd / NANO if self._reserved.nano_usd else None
            use.reserved_tokens, self._reserved = self._reserved.tokens, None
        step = self._step(event.step)
        step.models.append(use)
        self.asked.append((self._blocks.read(event), step, use))

    def _waited(self, event: StepReserved | WaitBegun | WaitOver) -> None:
        if isinstance(event, StepReserved):
            self._reserved = event
            return
        for use in self._step().models[-1:]:
            if isinstance(event, WaitBegun):
                use.waits_for = f"{event.limit} ({event.reason})"
            else:
                use.waits_for = None
                use.waited += event.waited_ms / 1000

    def _resumed(self, event: ModelResumed) -> None:
        for use in self._step(event.step).models[-1:]:
            use.error = None  # it was only cut
            attempt = len(self.story.attempts)
            again = Resumption(attempt=attempt, at=event.at, changed=list(event.changed))
            use.resumed.append(again)

    def _answered(self, event: ModelResumed | ModelEnded | ModelFailed | ModelPaused) -> None:
        if isinstance(event, ModelResumed):
            self._resumed(event)
            return
        models = self._step().models
        if not models:  # a hook answered in the model's place
            return
        use = models[-1]
        use.took = max(event.at - use.at - use.waited, 0.0) if event.at else None
        if isinstance(event, ModelFailed):
            use.error = event.error
        elif isinstance(event, ModelPaused):
            use.finish_reason, use.usage = "paused", event.usage
        else:
            paused = (each.usage for each in models[:-1] if each.finish_reason == "paused")
            use.finish_reason, use.usage = event.finish_reason, event.usage - sum(paused, Usage())

    def _decided(self, event: HookDecided) -> None:
        decision = HookDecision(event=event.event, hook=event.hook, said=dict(event.said))
        if event.call_id is not None:
            self._tool(event.call_id).decisions.append(decision)
        elif event.event == "before_turn":
            self.story.decisions.append(decision)
        elif event.event == "before_step":
            self._ahead.append(decision)
        else:
            self._step().decisions.append(decision)

    def _tool(self, call_id: str, name: str = "") -> ToolUse:
        use = self._tools.get(call_id)
        if use is None:
            use = self._tools[call_id] = ToolUse(call_id=call_id, tool_name=name)
            self._step().tools.append(use)
        use.tool_name = use.tool_name or name
        return use

    def _take_part(self, part: dict[str, Any]) -> None:
        use = self._tool(str(part.get("toolCallId")))
        use.output, use.error = part.get("output"), part.get("errorText")
        use.outcome, use.waits_for = "answered", None

    def _said(self, chunk: Chunk) -> None:
        kind = chunk["type"]
        if kind == "start-step":
            self._step(self._next_number())
        elif kind == "reset-step":
            step = self._step()
            step.text = step.reasoning = ""
        elif kind == "text-delta":
            self._step().text += str(chunk["delta"])
        elif kind == "reasoning-delta":
            self._step().reasoning += str(chunk["delta"])
        elif kind.startswith("tool-"):
            self._said_of_tool(chunk)

    def _next_number(self) -> int:
        steps = self.story.steps
        # Calls that a person allowed run before the first step, and belong to it.
        begun = bool(steps) and bool(steps[-1].models or steps[-1].text)
        return steps[-1].number + 1 if begun else 0

    def _said_of_tool(self, chunk: Chunk) -> None:
        use = self._tool(str(chunk["toolCallId"]), str(chunk.get("toolName", "")))
        match chunk["type"]:
            case "tool-input-available":
                use.input = chunk.get("input")
                use.waits_for = None if chunk.get("providerExecuted") is True else "client"
            case "tool-input-error":
                use.input, use.error = chunk.get("input"), str(chunk.get("errorText"))
                use.outcome, use.waits_for = use.outcome or "invalid", None
            case "tool-output-available":
                use.output, use.waits_for = chunk.get("output"), None
                use.outcome = use.outcome or "answered"
            case "tool-output-error":
                use.error, use.waits_for = str(chunk.get("errorText")), None
                use.outcome = use.outcome or "failed"
            case "tool-approval-request":
                use.waits_for = "approval"
            case _:
                pass


def story_as_data(story: TurnStory, step: int | None = None) -> dict[str, Any]:
    """The story as JSON data, in the spelling of the wire, without the row of the turn."""
    told: dict[str, Any] = {
        "attempts": story.attempts,
        "decisions": story.decisions,
        "steps": [each for each in story.steps if step in (None, each.number)],
        "seconds": story.seconds,
        "cost": story.cost,
    }
    return json.loads(json.dumps(told))
