"""From stored history to the prompt (spec/02 §10), then `before_turn` and `authorize_turn`.

Reads only a window from the leaf upward, and conversion is cached by (id, version), so a turn at
message 10,000 costs what it costs at message 100.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NoReturn, cast

import msgspec

from thinkwell.core.errors import CallerLostError, EmptyPromptError, ToolDefinitionError
from thinkwell.core.turn_events import ChatTranscriptRepaired, ToolsShadowed
from thinkwell.core.user_code import call_hook
from thinkwell.hooks import values
from thinkwell.hooks.answers import SAME_TURN, TurnConfig
from thinkwell.hooks.contexts import HookContext, TurnContext
from thinkwell.hooks.dispatch import with_turn_config
from thinkwell.hooks.given import read_tools
from thinkwell.hooks.read_only import read_only_copy
from thinkwell.journal.turns import TurnGoneError, find_turn
from thinkwell.messages.convert import (
    close_with_user,
    count_older,
    to_model_messages,
    truncate_message,
)
from thinkwell.messages.limits import MAX_ROW_BYTES
from thinkwell.messages.message import UIMessage, tool_parts
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from thinkwell.messages.repair import is_intact, repair_interrupted_tool_part, repair_transcript
from thinkwell.models.base import Model
from thinkwell.session.cache import MessageCache
from thinkwell.session.rows import StoredMessage
from thinkwell.store.base import Transaction
from thinkwell.tools.model_output import model_output
from thinkwell.tools.tool import Tool, client_tool
from thinkwell.turn.ask.run_options import NO_OPTIONS, Options, recall_options
from thinkwell.turn.end.ending import StageError
from thinkwell.turn.run.approval import withdraw_questions
from thinkwell.turn.run.journal_events import note_decision, path_of
from thinkwell.turn.run.repairs import repairs_of
from thinkwell.turn.run.request_record import fingerprint
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.settings import settings_of
from thinkwell.turn.run.step import Prompt

MARKER = "## What you can do here"

_WITH_TOOLS = (
    "You can call these tools: {names}. Call one when it helps to answer; its own description says "
    "what it does and what it needs. A tool may run on another machine and take a while."
)
_WITHOUT_TOOLS = "You have no tools in this conversation; answer from what you know and are told."
_ALWAYS = "Do not claim to have done or to be able to do anything that these tools do not offer."


def with_capabilities(system: str, tool_names: Collection[str], lines: Sequence[str] = ()) -> str:
    """The system prompt with the block, unless it has one already."""
    if MARKER in system:
        return system
    return f"{system}\n\n{capability_block(tool_names, lines)}".strip()


def capability_block(tool_names: Collection[str], lines: Sequence[str] = ()) -> str:
    """The block for these tools, with what features say about theirs."""
    names = ", ".join(sorted(tool_names))
    first = _WITH_TOOLS.format(names=names) if names else _WITHOUT_TOOLS
    return "\n".join((MARKER, first, *lines, _ALWAYS))


_PRINTS: Final = "prints"
MIN_RECENT = 4
"""The newest messages are always sent, whatever their size."""


async def assemble(turn: RunningTurn) -> Prompt:
    """Everything the first model call needs."""
    parts, options = turn.parts, _options_of(turn)
    if parts.recording is not None:
        options = parts.recording.options(options)
    facts = HookContext(**turn.hook_fields())
    tools = await turn_tools(turn, facts)
    lines = parts.offers.prompt(facts)
    offered = {**parts.scopes.active_tools(), **tools}
    base = options.system
    if base is None and parts.session.memory is not None:
        base = await parts.session.memory.prompts.freeze(_person(turn)) or None
    if base is None:
        base = await _overridden(turn, "get_system_prompt")
    config = SAME_TURN
    context = TurnContext(
        **turn.hook_fields(),
        config=config,
        system=with_capabilities(base, _offered(offered, None), lines),
        messages=await read_history(turn, tools),
        tools=MappingProxyType(offered),
        model=await _chosen_model(turn, options),
        body=turn.record.body and read_only_copy(turn.record.body),
        attempt=turn.record.attempt - 1,
        scopes=parts.scopes.get_snapshot(),
        turn_metadata=turn.record.metadata and read_only_copy(turn.record.metadata),
    )
    if parts.hooks.registry.hooks("before_turn"):
        decided = partial(note_decision, turn, "before_turn")
        config = await parts.hooks.before_turn(context, parts.resolve_model, decided)
        context = with_turn_config(context, config)
    turn.settings = settings_of(parts.agent, config, options)
    turn.settings = msgspec.structs.replace(
        turn.settings,
        tools={**tools, **(config.tools or {})},
        # What was recorded has been through them.
        transforms=turn.settings.transforms if parts.recording is None else (),
        authorization=await call_hook("authorize_turn", parts.agent.authorize_turn, context),
    )
    if not context.messages:
        await _refuse_empty(turn)
    return Prompt(
        model=context.model,
        system=_system(base, lines, context.tools, config),
        messages=context.messages,
        tools=turn.settings.tools,
        config=config,
    )


async def chosen_model(turn: RunningTurn) -> Model:
    """The model of the turn, before hooks have their say."""
    return await _chosen_model(turn, _options_of(turn))


async def _chosen_model(turn: RunningTurn, options: Options) -> Model:
    named = await _overridden(turn, "get_model") if options.model is None else options.model
    return await turn.parts.load_model(named)


async def _refuse_empty(turn: RunningTurn) -> NoReturn:
    """There is nothing to answer, by mistake or because it was cleared away meanwhile."""
    # The row is asked: a clear stops the turn only after it has committed, and that may be later.
    stored = await find_turn(turn.parts.store, turn.record.agent_id, turn.record.request_id)
    if stored is None or stored.settled:
        raise TurnGoneError(turn.record.request_id)
    raise EmptyPromptError(
        "There is no message to send to the model. Give `run` an input, or add messages first."
    )


def _options_of(turn: RunningTurn) -> Options:
    """What holds for this turn only; after a crash, as far as its row tells."""
    if turn.record.chosen is None:
        return NO_OPTIONS
    if turn.handle.options is None:
        try:
            turn.handle.options = recall_options(turn.record.chosen)
        except CallerLostError as error:
            raise StageError("recovery", error) from error
    return turn.handle.options


_RETURNS: Final[Mapping[str, tuple[type, values.ValueKind]]] = {
    "get_model": (object, values.MODEL),
    "get_system_prompt": (str, values.TEXT),
    "get_tools": (Mapping, values.TOOLS),
}


async def _overridden(turn: RunningTurn, method: str) -> Any:
    """What a method of the agent returned that users override."""
    agent = turn.parts.agent
    value = await call_hook(method, getattr(agent, method))
    expected, kind = _RETURNS[method]
    fits: bool = value is not None and isinstance(value, expected)
    if not fits:
        values.returned(f"{type(agent).__name__}.{method}()", value, kind)
    return cast("Any", value)


def _system(base: str, lines: Sequence[str], tools: Mapping[str, Tool], config: TurnConfig) -> str:
    """The hook's own text as it is; else the base with a block about the tools really offered."""
    if config.system is not None:
        return config.system
    return with_capabilities(base, _offered(tools, config.active_tools), lines)


def _offered(tools: Mapping[str, Tool], active: Collection[str] | None) -> list[str]:
    return [
        name
        for name, tool in tools.items()
        if tool.is_enabled() and (active is None or name in active)
    ]


async def turn_tools(turn: RunningTurn, facts: HookContext) -> dict[str, Tool]:
    """The static tools of the turn: the class's, `get_tools`, the features', and the client's
    (spec/02 §9.3). Static owners that share a name are an error naming both (DESIGN §8.5).
    """
    tools = dict(turn.parts.own_tools)
    owners = dict.fromkeys(tools, "a method decorated with @tool")
    more = await _overridden(turn, "get_tools")
    for name, tool in (read_tools(more, "get_tools()") if more else {}).items():
        _claim(turn, owners, name, "get_tools()")
        tools[name] = tool
    brought = turn.handle.options or NO_OPTIONS
    for name, tool in brought.tools.items():
        _claim(turn, owners, name, "run(tools=...)")
        tools[name] = tool
    for name, (tool, owner) in turn.parts.offers.tools(facts).items():
        _claim(turn, owners, name, owner)
        tools[name] = tool
    for name, made in {**_declared(turn), **brought.handled}.items():
        server = name in tools and not tools[name].is_client
        if server or turn.parts.scopes.find_tool(name) is not None:
            turn.parts.bus.emit(
                ToolsShadowed, **turn.event_fields(), name=name, winner="server", loser="client"
            )
        else:
            tools[name] = made
    return tools


def _declared(turn: RunningTurn) -> dict[str, Tool]:
    """The tools the client said it has; of two with one name the last counts."""
    return {
        t["name"]: client_tool(t["name"], t.get("description", ""), t.get("parameters"))
        for t in turn.record.client_tools
    }


def _claim(turn: RunningTurn, owners: dict[str, str], name: str, owner: str) -> None:
    """One more static owner of a tool; raises if another has the name already."""
    found = turn.parts.scopes.find_tool(name)
    other = owners.get(name) if found is None else f"a tool of scope {found.scope.name!r}"
    if other is not None:
        raise ToolDefinitionError(
            f"Two tools share a name: {owner} brings a tool named {name!r}, and {other} has that "
            "name too. Rename one of them."
        )
    owners[name] = owner


async def read_history(turn: RunningTurn, tools: Mapping[str, Tool]) -> tuple[ModelMessage, ...]:
    """The conversation as the model sees it: repaired, shortened, converted."""
    try:
        messages = await _read_history(turn, tools)
    except Exception as error:
        raise StageError("transcript", error) from error
    memory = turn.parts.session.memory
    if memory is None or not messages:
        return messages
    tail = await memory.prompts.tail(_person(turn))
    # The word to go on belongs to the reply it follows, not to the context behind it.
    return (*close_with_user(messages), *tail) if tail else messages


def _person(turn: RunningTurn) -> str | None:
    """Who asked: blocks of a person are in no other one's turn."""
    principal = turn.record.principal
    return None if principal is None else principal.id


async def _read_history(turn: RunningTurn, tools: Mapping[str, Tool]) -> tuple[ModelMessage, ...]:
    cache = turn.parts.session.cache
    window = await _repaired(turn, await _window(turn), tools)
    if not window:
        return ()
    first = window[0].depth - 1
    older = count_older(first + len(window)) - first
    made = [
        stored.made.get("older") or _shortened(cache, stored)
        if place < older or stored.bytes > MAX_ROW_BYTES
        else stored.made.get("model") or cache.model_messages(stored)
        for place, stored in enumerate(window)
    ]
    read = tuple(chain.from_iterable(made))
    turn.requests.begin(read, path_of(window, older), _prints_of(window, made))
    return await with_model_outputs(turn, read, tools)


def _prints_of(
    window: Sequence[StoredMessage], made: Sequence[tuple[ModelMessage, ...]]
) -> list[str]:
    """The hashes of stored messages, each made once for a version and a form of it."""
    # No call for a message whose hash is known: a long conversation has hundreds of them.
    prints: list[str] = []
    for stored, messages in zip(window, made, strict=True):
        known = stored.made.get(_PRINTS)
        if known is None or known[0] is not messages:
            known = messages, _printed(stored, messages)
        prints += known[1]
    return prints


def _printed(stored: StoredMessage, messages: tuple[ModelMessage, ...]) -> tuple[str, ...]:
    prints = tuple(map(fingerprint, messages))
    stored.made[_PRINTS] = messages, prints
    return prints


async def _window(turn: RunningTurn) -> list[StoredMessage]:
    recent = await turn.parts.session.get_recent_history(
        turn.parts.agent.hydration_byte_budget, MIN_RECENT, leaf_id=turn.reply.parent
    )
    return recent.messages


def _is_whole(message: UIMessage) -> bool:
    """Whether there is nothing to repair in it: most messages have no calls at all."""
    return not any(tool_parts(message)) or is_intact(message)


async def _repaired(
    turn: RunningTurn, window: list[StoredMessage], tools: Mapping[str, Tool]
) -> list[StoredMessage]:
    """Give every unanswered call a result; a changed message is stored once and stays as it is."""
    cache = turn.parts.session.cache
    if all(cache.all_converted(window, _is_whole, variant="intact")):
        return window
    answered_elsewhere = {name for name, tool in tools.items() if tool.is_client}
    default = partial(repair_interrupted_tool_part, client_tools=answered_elsewhere)
    messages = [stored.message for stored in window]
    repair = repair_transcript(messages, await repairs_of(turn, messages, default))
    if not repair.changed_ids:
        return window
    session = turn.parts.session

    async def store(tx: Transaction) -> None:
        for before, message in zip(window, repair.messages, strict=True):
            if message["id"] in repair.changed_ids:
                await session.update(tx, message)
                await withdraw_questions(tx, turn.parts, before.message)

    await turn.parts.commits.insist(turn.parts.owner, store)
    for message in repair.messages:
        if message["id"] == turn.message_id:  # a continuation has read it before
            turn.reply.take_repaired(message)
    turn.parts.bus.emit(
        ChatTranscriptRepaired,
        **turn.event_fields(),
        removed_tool_calls=repair.removed_tool_calls,
        normalized_inputs=repair.normalized_inputs,
        tool_call_ids=repair.tool_call_ids,
    )
    await turn.parts.audience.send_transcript()
    return await _window(turn)


def _shortened(cache: MessageCache, stored: StoredMessage) -> tuple[ModelMessage, ...]:
    """A message that is old or very long; the very same as before if it is short enough."""

    def convert(message: UIMessage) -> tuple[ModelMessage, ...]:
        short = truncate_message(message)
        return cache.model_messages(stored) if short is message else to_model_messages(short)

    return cache.converted(stored, convert, variant="older")


async def with_model_outputs(
    turn: RunningTurn, messages: tuple[ModelMessage, ...], tools: Mapping[str, Tool]
) -> tuple[ModelMessage, ...]:
    """The messages, with results rewritten by the tools that made them."""
    speaking = {name: tool for name, tool in tools.items() if tool.to_model_output is not None}
    if not speaking:
        return messages
    inputs: dict[str, Any] = {}
    result: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = (part for part in message.content if isinstance(part, ToolCallContent))
            inputs.update({call.tool_call_id: call.input for call in calls})
        if isinstance(message, ToolMessage):
            contents = [await _rewritten(turn, c, speaking, inputs) for c in message.content]
            if any(new is not old for new, old in zip(contents, message.content, strict=True)):
                message = ToolMessage(tuple(contents))  # else it stays the one that is stored
        result.append(message)
    return tuple(result)


async def _rewritten(
    turn: RunningTurn,
    content: ToolResultContent,
    tools: Mapping[str, Tool],
    inputs: Mapping[str, Any],
) -> ToolResultContent:
    tool = tools.get(content.tool_name)
    if tool is None or content.kind not in ("text", "json"):
        return content
    call_id = content.tool_call_id
    made = await model_output(
        tool.to_model_output,
        tool_call_id=call_id,
        input=inputs.get(call_id, {}),
        output=content.value,
    )
    if made.error is not None:
        hook = f"to_model_output of {tool.name!r}"
        turn.parts.hooks.report("to_model_output", hook, made.error)
    return msgspec.structs.replace(content, kind=made.kind, value=made.value)
