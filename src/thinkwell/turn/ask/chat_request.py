"""A client's chat request becomes a turn, over whatever it came (spec/01 §6, §8.1).

A client sends its whole list. Only its user messages are read, and of those only what a user can
say; everything else is written by the server alone, so a copy of it is at most a reference by id
(DESIGN §8.12).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Protocol, cast

import msgspec

from thinkwell.core.authority import Subject
from thinkwell.core.errors import MessageTooLargeError, ToolDefinitionError
from thinkwell.core.principal import Principal
from thinkwell.core.tasks import Pieces, in_pieces
from thinkwell.core.turn_events import ChatRequestFailed
from thinkwell.hooks.contexts import ChatErrorContext, facts_of
from thinkwell.journal.turns import RETRIED, Trigger, TurnRecord
from thinkwell.messages.limits import enforce_row_size_limit
from thinkwell.messages.message import Part, UIMessage
from thinkwell.messages.validate import check_message, check_reference
from thinkwell.session.history import History
from thinkwell.session.kept_path import KeptPath
from thinkwell.tools.tool import client_tool
from thinkwell.turn.ask.admission import Admission, TurnRequest, from_client
from thinkwell.turn.ask.authority import TooManyTurns, demand
from thinkwell.turn.ask.forgery import report_copies
from thinkwell.turn.ask.policy import Plan, Policy
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.transcript import Transcript
from thinkwell.turn.turns import Turns
from thinkwell.wire.client_json import NOT_READ
from thinkwell.wire.frames import ChatRequest

log = logging.getLogger("thinkwell.agent")

CHANNEL = "web"
"""Stamped on user messages that come from a client."""
_PIECE = 500
"""Messages after which others go first."""
_ALMOST_NONE = 2
"""Unknown ids that are looked up in the transaction that accepts them."""
_FEW = 32
"""Unknown ids that may be looked up on the event loop."""


class Viewer(Protocol):
    """Somebody who is shown transcripts."""

    shown: Transcript | None
    """What it was told to show last."""


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends a chat request."""

    trigger: Trigger
    connection: str | None = None
    """The connection that asks; it needs no transcript back."""
    principal: Principal | None = None
    read_only: bool = False
    payer: str | None = None
    """Whose share of turns it takes."""
    viewer: Viewer | None = None
    """Its tab."""


async def accept_chat(
    turns: Turns, policy: Policy, asked: ChatRequest, asker: Asker
) -> tuple[Admission, TurnHandle | None] | None:
    """Accept the turn a client asks for; None if the policy drops it.

    Raises `ValueError` for messages that are none and `NotAllowed`; nothing is stored then.
    """
    if asked.id.endswith(RETRIED):  # it would stand for the retry of another turn
        raise ValueError(f"The id of a chat request cannot end with {RETRIED!r}")
    history = turns.parts.session.history
    if history.kept is not None:
        await history.kept.refresh()
    ids = await in_pieces(ids_of(asked.messages))
    known = await _known_among(history, ids)
    sent = await in_pieces(read_list(asked.messages, ids, known))
    again = asked.trigger == "regenerate-message"
    await demand_send(turns, asker, asked.id, sent.ids[-1] if sent.ids else None, again=again)
    if turns.parts.bus.heard and any(_is_copy(item) for item in asked.messages):
        await report_copies(turns, asked.messages, asker.principal)
    async with turns.intake:  # two tabs at once: the second sees the first in line
        regenerate = asked.trigger == "regenerate-message" and sent.ids
        plan = Plan() if regenerate else turns.plan(policy, asker.principal)
        if plan.drop:
            return None
        request = TurnRequest(
            trigger=asker.trigger,
            request_id=asked.id,
            messages=sent.messages,
            listed=sent.ids,
            unknown=sent.unknown,
            branch_from=sent.ids[-1] if regenerate else None,
            body=asked.body or None,
            client_tools=read_client_tools(asked.client_tools),
            message_ids=sent.trailing,
            supersedes=tuple(handle.record for handle in plan.supersedes),
            not_before=plan.not_before,
            steer=plan.steer,
            principal=asker.principal,
            read_only=asker.read_only,
        )
        busy = turns.busy
        return await ask_as_client(
            turns,
            request,
            asker,
            crossed=lambda: not regenerate and (busy or _crossed(asked, sent, asker, history.kept)),
        )


async def ask_as_client(
    turns: Turns,
    request: TurnRequest,
    asker: Asker,
    *,
    crossed: Callable[[], bool] = lambda: False,
) -> tuple[Admission, TurnHandle | None]:
    """Accept a client's turn, unless too many wait already. Raises `TooManyTurns`."""
    crowd, payer = turns.parts.crowd, asker.payer
    if not crowd.has_room(payer, len(turns.handles())):
        raise TooManyTurns
    crowd.enter(payer)
    handle = None
    try:
        admission, handle = await turns.ask(request, origin=asker.connection, crossed=crossed)
    finally:
        if handle is None:
            crowd.leave(payer)
        else:
            handle.at_end(partial(crowd.leave, payer))
    return admission, handle


async def demand_send(
    turns: Turns,
    asker: Asker,
    request_id: str | None,
    newest: str | None,
    *,
    again: bool = False,
) -> None:
    """Whether they may ask for a turn. To ask again about a stored message is an edit.

    Raises `NotAllowed`.
    """
    if newest is not None and not again:
        again = await turns.parts.session.history.is_stored(newest)
    subject = Subject(read_only=asker.read_only, request_id=request_id, message_id=newest)
    action = "edit" if again else "send"
    await demand(turns.parts.agent_ref, action, asker.principal, subject)


async def demand_cancel(turns: Turns, request_id: str, asker: Asker) -> None:
    """Whether they may stop this turn. Raises `NotAllowed`."""
    record = next((t.record for t in turns.handles() if t.record.request_id == request_id), None)
    subject = Subject(
        read_only=asker.read_only,
        request_id=request_id or None,
        asker=None if record is None else record.principal,
    )
    await demand(turns.parts.agent_ref, "cancel", asker.principal, subject)


async def explain_refusal(turns: Turns, request_id: str | None, reason: str, asker: Asker) -> str:
    """What the sender of a request that cannot run is told, as `on_chat_error` decides (AC87)."""
    parts = turns.parts
    error = ValueError(reason)
    refused = TurnRecord(  # the turn that it did not become
        agent_id=parts.owner.agent_id,
        request_id=request_id or "",
        trigger=asker.trigger,
        status="skipped",
        generation=turns.line.generation,
        principal=asker.principal,
    )
    context = ChatErrorContext(
        **facts_of(refused, parts.agent_ref),
        error=error,
        stage="parse",
        messages_persisted=False,
        partial=None,
        attempt=0,
    )
    decided = await parts.hooks.on_chat_error(error, context)
    parts.bus.emit(
        ChatRequestFailed,
        agent=refused.agent_id,
        request_id=refused.request_id,
        stage="parse",
        messages_persisted=False,
        classification=None,
        error=decided,
    )
    return str(decided)


def read_client_tools(schemas: list[Any] | None) -> tuple[dict[str, Any], ...] | None:
    """The client's tools by name, the last of a name winning; what is no tool is left out."""
    if schemas is None:
        return None
    found: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        if isinstance(schema, dict):
            fields = cast("dict[str, Any]", schema)
            try:
                made = client_tool(
                    fields.get("name"), fields.get("description"), fields.get("parameters")
                )
            except ToolDefinitionError as error:
                log.warning("a client tool was left out: %.200s", error)
                continue
            found[made.name] = fields
    return tuple(found.values())


def _crossed(asked: ChatRequest, sent: SentList, asker: Asker, kept: KeptPath | None) -> bool:
    """Whether a client's list may not be the stored one with its question behind it.

    It asked before it had seen what it was sent last, or it shows something else. Then its question
    is gone from its list, or stands in the wrong place.
    """
    shown = None if asker.viewer is None else asker.viewer.shown
    if shown is not None and _missed(asked, shown):
        return True
    if kept is None:
        return False  # nobody watches
    if not kept.is_right:
        return True
    if sent.ids and kept.holds(sent.ids[-1]):
        return False  # a stored question is changed: its list ends there, and is shown at the end
    if asked.after is not None:
        return asked.after != kept.last
    return not kept.is_followed_by(sent.ids, {message["id"] for message in sent.messages})


def _missed(asked: ChatRequest, shown: Transcript) -> bool:
    """Whether the last message of a transcript is missing in a list, or was still growing there."""
    if asked.after is not None and asked.after == shown.last:
        return False
    last = next((m for m in reversed(asked.messages) if m["id"] == shown.last), None)
    if last is None:
        return True
    parts = last.get("parts")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and cast("Part", part).get("state") == "streaming"
        for part in cast("list[Any]", parts)
    )


class SentList(msgspec.Struct, frozen=True):
    """What counts of a client's list."""

    messages: tuple[UIMessage, ...]
    """User messages that may be new, or changed; of what is stored, at most the last."""
    ids: tuple[str, ...]
    """The ids of the whole list."""
    unknown: tuple[str, ...]
    """Those that are not known to be stored."""
    trailing: tuple[str, ...]
    """The user messages at its end: what the client wants answered (spec/01 §3.4.4)."""


async def _known_among(history: History, ids: Sequence[str]) -> Collection[str]:
    """The ids of a list that are stored: found here, not while everybody waits for the store."""
    known = history.known_ids
    unknown = await in_pieces(_not_in(known, ids))
    if len(unknown) <= _ALMOST_NONE:  # its new question: that is looked up where it is accepted
        return known
    few = len(unknown) <= _FEW
    return {*known, *await history.stored_among(unknown, few=few)}


def _not_in(known: Collection[str], ids: Sequence[str]) -> Pieces[list[str]]:
    found: list[str] = []
    for start in range(0, len(ids), _PIECE):
        if start:
            yield
        found += [each for each in ids[start : start + _PIECE] if each not in known]
    return found


def ids_of(sent: list[Any]) -> Pieces[list[str]]:
    """The ids a client gives its messages, with pauses; what is no message has none."""
    ids: list[str] = []
    for start in range(0, len(sent), _PIECE):
        if start:
            yield
        ids += [
            # No call for each of them: clients send their whole list with every question.
            found if type(each) is dict and type(found := each.get("id")) is str else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]
            for each in sent[start : start + _PIECE]
        ]
    return ids


def read_list(
    sent: list[Any], ids: Sequence[str], stored: Collection[str] = ()
) -> Pieces[SentList]:
    """Read a client's list, with pauses. Raises `ValueError` that says what is wrong with it.

    Of what is stored, the id is all that counts, unless it is the last.
    """
    unknown: list[str] = []
    messages: list[UIMessage] = []
    for start in range(0, len(ids), _PIECE):
        if start:
            yield
        piece = ids[start : start + _PIECE]
        for place in [at for at, each in enumerate(piece, start) if each not in stored]:
            if place < len(ids) - 1 and not _is_not_read(sent[place]):
                _read_one(sent[place], unknown, messages)
    if sent:
        _read_one(sent[-1], unknown, messages)
    at_the_end = takewhile(lambda each: each.role == "user", map(check_reference, reversed(sent)))
    trailing = [reference.id for reference in at_the_end]
    return SentList(tuple(messages), tuple(ids), tuple(unknown), tuple(reversed(trailing)))


def _read_one(message: Any, unknown: list[str], messages: list[UIMessage]) -> None:
    reference = check_reference(message)
    unknown.append(reference.id)
    if reference.role == "user":
        messages.append(_incoming(message))


def _is_copy(item: Any) -> bool:
    """Whether a client sent a reply along, as its hook does with the whole conversation."""
    return isinstance(item, dict) and cast("dict[str, Any]", item).get("role") == "assistant"


def _is_not_read(message: Any) -> bool:
    """Whether it was stored when its list was read; if it is gone by now, it was deleted."""
    return isinstance(message, dict) and cast("dict[str, Any]", message).get("parts") is NOT_READ


def _incoming(value: Any) -> UIMessage:
    """A user message as it may be stored."""
    message = from_client(check_message(value))
    try:
        enforce_row_size_limit(message)
    except MessageTooLargeError as error:
        raise ValueError(str(error)) from error
    metadata = {**message.get("metadata", {}), "channel": CHANNEL}
    return {**message, "metadata": metadata}
