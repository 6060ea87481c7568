"""How `thinkwell turns show` tells a turn in a terminal: a block per step, at most 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.rule import Rule

from thinkwell.cli.plain_text import PlainTable, PlainText
from thinkwell.core import json
from thinkwell.journal.prefix import CacheBreak
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from thinkwell.models.base import ModelRequest
from thinkwell.turn.travel.differences import compare_requests, shown
from thinkwell.turn.travel.story import (
    HookDecision,
    ModelUse,
    Resumption,
    StoryStep,
    ToolUse,
    TurnStory,
)

WIDTH = 100
SHORT = 240
"""Characters of a value where the whole is not asked for."""
_GOOD = ("executed", "answered", "substituted")
_LABEL = 9


def show_story(
    story: TurnStory, *, step: int | None = None, diff: bool = False, console: Console | None = None
) -> None:
    """All steps in short, or one with everything it was sent; with `diff`, what changed instead."""
    out = console or Console(highlight=False, markup=False)
    out.width = min(out.width, WIDTH) if out.is_terminal else WIDTH
    view = _View(out, whole=step is not None)
    if step is None:
        for decision in story.decisions:
            view.row("hook", _decided(decision), "magenta")
    before: ModelUse | None = None
    for each in story.steps:
        if step in (None, each.number):
            view.step(each, story.attempts, before if diff else None, diff=diff)
        before = each.models[-1] if each.models else before


class _View:
    def __init__(self, console: Console, *, whole: bool) -> None:
        self._console = console
        self._whole = whole

    def step(
        self, step: StoryStep, attempts: Sequence[float], before: ModelUse | None, *, diff: bool
    ) -> None:
        """One step."""
        self._console.print()
        title = PlainText.assemble((f" step {step.number} ", "bold"), *_summary(step))
        self._console.print(Rule(title, align="left", style="dim"))
        for use in step.models:
            if len(attempts) > 1:
                self.row("attempt", f"{use.attempt} at {_clock(use.at)}", "dim")
            if diff:
                self._changes(before, use)
            else:
                self._sent(use)
            self._fate(use)
            before = use
        for decision in step.decisions:
            self.row("hook", _decided(decision), "magenta")
        if step.reasoning:
            self.row("thought", self._cut(step.reasoning), "dim italic")
        if step.text:
            self.row("said", self._cut(step.text), "")
        for tool in step.tools:
            self._tool(tool)

    def _fate(self, use: ModelUse) -> None:
        """What a call met beside its answer."""
        if use.waits_for is not None:
            self.row("waits", f"for a free model slot: {use.waits_for}", "yellow")
        if use.waited:
            self.row("waited", f"{_milliseconds(use.waited * 1000)} for a free model slot", "dim")
        if use.cache_break is not None:
            self.row("cache", _broken(use.cache_break), "yellow")
        for again in use.resumed:
            self.row("resumed", _taken_up(again))
        if use.error is not None:
            self.row("failed", use.error, "red")

    def row(self, label: str, text: str | PlainText, style: str = "") -> None:
        """One line, and what it needs below it."""
        grid = PlainTable.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=_LABEL, style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(f"  {label}", PlainText(text, style=style) if isinstance(text, str) else text)
        self._console.print(grid)

    def _sent(self, use: ModelUse) -> None:
        if use.request is None:
            self.row("sent", use.problem or "not kept", "red")
            return
        request = use.request
        if not self._whole:
            self.row("sent", _in_short(request))
            for message in request.messages[-1:]:
                for who, said in _messages(message):
                    self.row("", _line(who, said, self._cut))
            return
        self.row("system", request.system or "(none)")
        for tool in request.tools:
            self.row("offers", f"{tool.name}: {tool.description}", "blue")
        for name, value in _settings(request):
            self.row("setting", f"{name} = {value}", "blue")
        for message in request.messages:
            for who, said in _messages(message):
                self.row("sent", _line(who, said, self._cut))

    def _changes(self, before: ModelUse | None, use: ModelUse) -> None:
        """What the model is told now and was not told before."""
        if before is None or before.request is None or use.request is None:
            self._sent(use)
            return
        old, new = before.request.messages, use.request.messages
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        self.row("same", f"{same} message{'' if same == 1 else 's'}", "dim")
        for sign, messages, style in (("-", old[same:], "red"), ("+", new[same:], "green")):
            for message in messages:
                for who, said in _messages(message):
                    self.row(sign, _line(who, said, self._cut, style))
        for each in compare_requests(_recorded(before), _recorded(use)):
            if not each.path.startswith("messages"):
                left, right = shown(each.recorded, each.now)
                self.row("-", f"{each.path}: {left}", "red")
                self.row("+", f"{each.path}: {right}", "green")

    def _tool(self, tool: ToolUse) -> None:
        for decision in tool.decisions:
            self.row("hook", f"{tool.tool_name}: {_decided(decision)}", "magenta")
        given = self._cut(json.dumps(tool.input)) if tool.input is not None else ""
        self.row("tool", PlainText.assemble((tool.tool_name, "bold cyan"), f" {given}"))
        how = [tool.effect] if tool.effect else []
        if tool.waits_for is not None:
            how.append(f"waits for {'a person' if tool.waits_for == 'approval' else 'the client'}")
        elif tool.outcome is not None:
            how.append(tool.outcome)
        if tool.took_ms is not None and tool.effect:
            how.append(_milliseconds(tool.took_ms))
        good = tool.error is None and (tool.outcome in _GOOD or tool.waits_for)
        self.row("", PlainText(" · ".join([*how, tool.call_id]), style="dim" if good else "yellow"))
        if tool.error is not None:
            self.row("", f"→ {self._cut(tool.error)}", "red")
        elif tool.output is not None:
            self.row("", f"→ {self._cut(_text(tool.output))}")

    def _cut(self, text: str) -> str:
        text = text.strip()
        if self._whole or len(text) <= SHORT:
            return text
        return f"{text[:SHORT]}… ({len(text):,} characters)"


def _summary(step: StoryStep) -> Iterator[tuple[str, str]]:
    for use in step.models[-1:]:
        yield f"{use.provider}:{use.model} ", "cyan"
        said = [_clock(use.at)]
        if use.took is not None:
            said.append(_milliseconds(use.took * 1000))
        tokens = use.usage
        if tokens.input_tokens is not None or tokens.output_tokens is not None:
            said.append(f"{tokens.input_tokens or 0:,} in, {tokens.output_tokens or 0:,} out")
        if use.cost is not None:
            said.append(f"${use.cost:.4f}")
        if use.reserved is not None:
            said.append(f"${use.reserved:.4f} reserved")
        elif use.reserved_tokens is not None:
            said.append(f"{use.reserved_tokens:,} tokens reserved")
        open_end = "waiting" if use.waits_for else "cut off"
        said.append(use.finish_reason or ("failed" if use.error else open_end))
        yield f"· {' · '.join(said)} ", "dim"


def _in_short(request: ModelRequest) -> str:
    count = len(request.messages)
    pieces = [f"{count} message{'' if count == 1 else 's'}"]
    if request.system:
        pieces.append(f"a system prompt of {len(request.system):,} characters")
    if request.tools:
        names = ", ".join(tool.name for tool in request.tools)
        pieces.append(f"{len(request.tools)} tool{'s' if len(request.tools) > 1 else ''} ({names})")
    settings = ", ".join(f"{name}={value}" for name, value in _settings(request))
    return ", ".join(pieces) + (f"; {settings}" if settings else "")


def _settings(request: ModelRequest) -> Iterator[tuple[str, str]]:
    usual = ModelRequest(messages=())
    for name in ModelRequest.__struct_fields__:
        value = getattr(request, name)
        if name not in ("messages", "system", "tools") and value != getattr(usual, name):
            yield name, value if isinstance(value, str) else json.dumps(value)


def _messages(message: ModelMessage) -> Iterator[tuple[str, str]]:
    """Who speaks and what, part by part."""
    match message:
        case SystemMessage(content=text):
            yield "system", text
        case UserMessage(content=parts):
            for part in parts:
                yield "user", part.text if isinstance(part, TextContent) else f"[{part.media_type}]"
        case AssistantMessage(content=parts):
            for part in parts:
                yield "assistant", _of_assistant(part)
        case ToolMessage(content=results):
            for result in results:
                yield "result", f"{result.tool_name} → {_text(result.value)}"


def _of_assistant(part: TextContent | ReasoningContent | FileContent | ToolCallContent) -> str:
    if isinstance(part, ToolCallContent):
        return f"{part.tool_name} {json.dumps(part.input)}"
    if isinstance(part, FileContent):
        return f"[{part.media_type}]"
    return part.text if isinstance(part, TextContent) else f"(thinks) {part.text}"


def _line(who: str, said: str, cut: Any, style: str = "") -> PlainText:
    return PlainText.assemble((f"{who:<10}", "dim"), (cut(said), style))


def _broken(found: CacheBreak) -> str:
    since = found.since if found.since.startswith("step ") else f"turn {found.since}"
    said = f"{found.block} changed since {since}"
    return (
        said if found.lost_tokens is None else f"{said}: {found.lost_tokens:,} cached tokens lost"
    )


def _taken_up(again: Resumption) -> str:
    said = f"the same answer goes on, attempt {again.attempt} at {_clock(again.at)}"
    if not again.changed:
        return said
    return f"{said}; the {' and the '.join(again.changed)} changed since, the answer was paid for"


def _decided(decision: HookDecision) -> str:
    said = ", ".join(
        name if value is True else f"{name}={_text(value)}" for name, value in decision.said.items()
    )
    return f"{decision.hook or decision.event}: {said}"


def _recorded(use: ModelUse) -> Any:
    from thinkwell.turn.recorded_requests import RecordedRequest

    return RecordedRequest(
        step=0,
        provider=use.provider,
        model=use.model,
        at=use.at,
        request=use.request or ModelRequest(messages=()),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _milliseconds(amount: float) -> str:
    return f"{amount:,.0f} ms" if amount < 10_000 else f"{amount / 1000:,.1f} s"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
