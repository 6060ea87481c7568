"""The one way in: a request becomes a durable turn, or is found to be one already.

One transaction checks id and idempotency key, drops messages that are in the tree or in an
unsettled turn, and writes the row. Only after it has committed does anybody hear "accepted".

Of a client's list only user messages are input; the rest are references by id (DESIGN §8.12). So
whatever copy of a reply a client holds, its question goes below the head when it gets its slot,
unless it names a stored question to edit or to answer again.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import NestedTurnError, ReservedIdError, SubmissionConflictError
from thinkwell.core.ids import new_id
from thinkwell.core.json import clean_text
from thinkwell.core.principal import Principal
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import (
    ROOT,
    Chosen,
    Trigger,
    TurnRecord,
    answering_turn,
    find_turn,
    find_turn_by_key,
    inherited_tools,
    unsettled_turns,
)
from thinkwell.messages.message import NewMessage, UIMessage, user_message
from thinkwell.messages.sanitize import keep_user_parts, strip_reserved_metadata
from thinkwell.messages.validate import check_message
from thinkwell.session.draft import check_new_id, make_draft
from thinkwell.store.base import Transaction
from thinkwell.turn.ask.opening import open_and_start, open_turn
from thinkwell.turn.end.end_turn import SUPERSEDED, end_turn
from thinkwell.turn.handle import Start, WaitingTurn
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.running import current_turn

MOST_NEW = 500
"""Messages of a client that one turn may add: they are stored in one transaction."""
CHAT_TRIGGERS = ("ws-chat", "http-chat")
"""Whoever asks sends its whole transcript, which may hold a question it has changed."""
NOT_A_QUESTION = "the id {!r} belongs to a message that is no user message: use a new id"


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for."""

    trigger: Trigger
    messages: tuple[UIMessage, ...] = ()
    listed: tuple[str, ...] = ()
    """The ids of a client's whole list, in order; what is not in `messages` is a reference."""
    unknown: tuple[str, ...] | None = None
    """Those of `listed` that were not stored when that was looked up; None: nobody has looked."""
    new_ids: bool = False
    """The messages were made just now, so nobody can have stored them."""
    request_id: str | None = None
    function_input: bool = False
    branch_from: str | None = None
    """Answer under this message instead of the newest (regenerate)."""
    body: dict[str, Any] | None = None
    chosen: Chosen | None = None
    root: str | None = None
    """The turn it repeats, if it does."""
    client_tools: tuple[dict[str, Any], ...] | None = None
    """Tools the client declares; None keeps those of the turn before."""
    continues: str | None = None
    """The stored reply to go on with, instead of an input."""
    supersedes: tuple[TurnRecord, ...] = ()
    """Waiting turns whose place this one takes; their messages come first."""
    not_before: float | None = None
    steer: bool = False
    idempotency_key: str | None = None
    metadata: dict[str, Any] | None = None
    principal: Principal | None = None
    read_only: bool = False
    """Whoever asks must not change the agent's state, in this turn neither."""
    message_ids: tuple[str, ...] = ()


class Admission(msgspec.Struct, frozen=True):
    """The turn, and whether it was accepted now or known before."""

    record: TurnRecord
    accepted: bool
    start: Start | None = None
    """There if it found the slot free and has started in the same transaction."""


async def admit(
    parts: Parts, request: TurnRequest, generation: int, *, crossed: Callable[[], bool] = bool
) -> Admission:
    """Accept a turn. Raises `SubmissionConflictError` if id and key name different turns.

    `crossed`: whoever asks may show something else than what is stored.
    """
    return await parts.commits.run(
        parts.owner,
        lambda tx: _accept(tx, parts, request, generation, crossed=crossed),
        at_once=request.trigger in CHAT_TRIGGERS,
    )


async def _accept(
    tx: Transaction,
    parts: Parts,
    request: TurnRequest,
    generation: int,
    *,
    crossed: Callable[[], bool],
) -> Admission:
    alone = parts.line.is_free()  # then no turn is unsettled: that need not be asked for
    known = await _find_known(tx, parts.owner.agent_id, request)
    if known is not None:
        return Admission(known, accepted=False)
    waiting = () if alone else await _unsettled(tx, parts, request)
    if generation == 0 and request.unknown is not None:  # else copies of what was deleted count not
        _refuse_flood(request, len(request.messages) - sum(len(turn.input) + 1 for turn in waiting))
    found = await _sort_out(tx, parts, request, waiting)
    again = await _asked_again(tx, parts, request, found)
    if isinstance(again, TurnRecord):
        return Admission(again, accepted=False)
    inherited = await _supersede(tx, parts, request.supersedes)
    fresh, branch_from = _fresh(request, found, generation), found.branch_from
    _refuse_flood(request, len(fresh))
    if again is not None:
        fresh, branch_from = (*fresh, *again.messages), again.parent_id
    messages = inherited + fresh
    own = branch_from in {message["id"] for message in messages}
    asked = TurnRecord(
        agent_id=parts.owner.agent_id,
        request_id=request.request_id or new_id(),
        trigger=request.trigger,
        status="accepted",
        generation=generation,
        input=messages,
        input_digest=_digest(request),
        branch_from=None if own else branch_from,
        function_input=request.function_input,
        not_before=request.not_before,
        steer=request.steer,
        continuation=request.continues is not None,
        message_id=request.continues,
        body=request.body,
        **await _inherited(tx, parts, request),
        client_tools=await _client_tools(tx, parts, request, generation, alone=alone),
        idempotency_key=request.idempotency_key,
        metadata=request.metadata,
        message_ids=request.message_ids,
        principal=request.principal,
        read_only=request.read_only,
    )
    return await _open(tx, parts, asked, starts=alone and not crossed())


async def _open(tx: Transaction, parts: Parts, asked: TurnRecord, *, starts: bool) -> Admission:
    if starts and _may_start(parts, asked):
        record, start = await open_and_start(tx, parts, asked)
    else:
        record, start = await open_turn(tx, parts, asked), None
    crash_here("c0")
    return Admission(record, accepted=True, start=start)


def _may_start(parts: Parts, asked: TurnRecord) -> bool:
    """Whether a turn that finds the slot free starts in the transaction that accepts it.

    A client's question below the head: neither a hook nor a function has a say before it starts. A
    submission may still be withdrawn without a trace, so it starts when it has its slot.
    """
    below_the_head = asked.branch_from is None and bool(asked.input)
    waits = asked.not_before is not None or asked.generation != parts.line.generation
    hooked = parts.hooks.registry.hooks("on_turn_start")
    return asked.trigger in CHAT_TRIGGERS and below_the_head and not waits and not hooked


def _refuse_flood(request: TurnRequest, new: int) -> None:
    if new > MOST_NEW and request.trigger in CHAT_TRIGGERS:
        raise ValueError(f"the list has {new} new messages and at most {MOST_NEW} may come")


class Found(msgspec.Struct, frozen=True):
    """What the ids of a request stand for, as far as that was not known before."""

    known: set[str]
    """Ids in the tree, in the input of an unsettled turn, or of a reply that still grows."""
    waiting: Sequence[TurnRecord]
    """The unsettled turns, in order."""
    branch_from: str | None
    """The known message under which another reply is wanted."""


def _looks_up(request: TurnRequest) -> bool:
    """Whether anything of the request can be known: what was made just now cannot."""
    return bool(request.listed or request.messages) and not request.new_ids


async def _unsettled(tx: Transaction, parts: Parts, request: TurnRequest) -> Sequence[TurnRecord]:
    return await unsettled_turns(tx, parts.owner.agent_id) if _looks_up(request) else ()


async def _sort_out(
    tx: Transaction, parts: Parts, request: TurnRequest, waiting: Sequence[TurnRecord]
) -> Found:
    if not _looks_up(request):
        return Found(set(), waiting, None)
    history = parts.session.history
    asked = {*_unknown(request), *(message["id"] for message in request.messages)}
    if request.branch_from is not None:
        asked.add(request.branch_from)
    at_hand = history.known_ids
    known = {each for each in asked if each in at_hand}
    for turn in waiting:
        known |= {message["id"] for message in turn.input} | {turn.message_id or ""}
    lacks = history.head_path.is_known_to_lack
    if unsure := [each for each in asked - known if not lacks(each)]:
        known |= {row.id for row in await history.rows(unsure, tx)}
    branch_from = request.branch_from if request.branch_from in known else None
    return Found(known, waiting, branch_from)


def _fresh(request: TurnRequest, found: Found, generation: int) -> tuple[UIMessage, ...]:
    """The messages nobody has stored yet, each once, in order (DESIGN §8.1)."""
    fresh = {m["id"]: m for m in reversed(request.messages) if m["id"] not in found.known}
    if generation > 0:  # there was a clear
        for deleted in _deleted(request, found):
            fresh.pop(deleted, None)
    return tuple(reversed(fresh.values()))


def _deleted(request: TurnRequest, found: Found) -> Iterable[str]:
    """Of a client that has not heard of a clear yet, what stands before an unknown reply."""
    own = {message["id"] for message in request.messages}
    gone = {each for each in _unknown(request) if each not in own and each not in found.known}
    places = [place for place, each in enumerate(request.listed) if each in gone] if gone else []
    return request.listed[: places[-1]] if places else ()


def _unknown(request: TurnRequest) -> Sequence[str]:
    """The ids of the list that have to be looked up while everybody waits for the store."""
    return request.listed if request.unknown is None else request.unknown


class Edit(msgspec.Struct, frozen=True):
    """A question that is there already and is asked again."""

    messages: tuple[UIMessage, ...]
    """Its changed version; nothing if it is the same."""
    parent_id: str | None
    """Where that goes; for the same question, where its new reply goes. None: below the head."""


async def _asked_again(
    tx: Transaction, parts: Parts, request: TurnRequest, found: Found
) -> Edit | TurnRecord | None:
    """A client that asks a known question again, changed or not: what comes of it is a sibling of
    what is there (DESIGN §8.1). Over HTTP the same question is the same turn, if that went well.
    """
    last = request.messages[-1] if request.messages else None
    if last is None or request.trigger not in CHAT_TRIGGERS or request.branch_from is not None:
        return None
    if last["id"] not in found.known or last["id"] != request.listed[-1]:
        return None  # new: there is nothing it could be a changed version of
    turn = next((t for t in found.waiting if last["id"] in (m["id"] for m in t.input)), None)
    stored = await parts.session.get_message(last["id"], reader=tx)
    if stored is None and turn is not None:
        stored = next(m for m in turn.input if m["id"] == last["id"])
        parent: str | None = None  # it has no place yet
    else:
        rows = await parts.session.history.rows([last["id"]], tx)
        parent = (rows[0].parent_id or ROOT) if rows else None
    if stored is None or stored["role"] != "user":
        raise ValueError(NOT_A_QUESTION.format(last["id"]))  # a stored id is never rewritten
    if _as_stored(last) != _as_stored(stored):
        return Edit(({**last, "id": new_id()},), parent)
    if request.trigger == "http-chat":
        return turn or await _answered_by(tx, parts, last["id"]) or Edit((), last["id"])
    return Edit((), last["id"])


def _as_stored(message: UIMessage) -> Any:
    return json.loads(make_draft(message).content)["parts"]


async def _answered_by(tx: Transaction, parts: Parts, question_id: str) -> TurnRecord | None:
    """The turn whose answer to this question is shown, or else the newest; None if it failed."""
    history = parts.session.history
    answers = [r for r in await history.children(question_id, tx) if r.role == "assistant"]
    if not answers:
        return None
    if len(answers) > 1:
        shown = {row.id for row in await history.path(reader=tx)}
        answers.sort(key=lambda row: row.id in shown)
    turn = await answering_turn(tx, parts.owner.agent_id, answers[-1].id)
    return turn if turn is not None and turn.status not in ("error", "aborted", "skipped") else None


async def _supersede(
    tx: Transaction, parts: Parts, records: Sequence[TurnRecord]
) -> tuple[UIMessage, ...]:
    """End waiting turns and take their messages over."""
    messages: list[UIMessage] = []
    for record in records:
        ended = await end_turn(tx, parts, record, SUPERSEDED, waiting=True)
        messages.extend(() if ended is None else record.input)
    return tuple(messages)


async def _inherited(tx: Transaction, parts: Parts, request: TurnRequest) -> dict[str, Any]:
    """What it has of the turn whose reply it goes on with: what `run` was given, and the root."""
    if request.continues is None:
        return {"chosen": request.chosen, "root": request.root}
    source = await answering_turn(tx, parts.owner.agent_id, request.continues)
    if source is None:
        return {"chosen": request.chosen, "root": request.root}
    return {
        "chosen": request.chosen or source.chosen,
        "root": request.root or source.root_id,
    }


async def _client_tools(
    tx: Transaction, parts: Parts, request: TurnRequest, generation: int, *, alone: bool
) -> tuple[dict[str, Any], ...]:
    """What the client declares now, else what it declared last (spec/01 §6.2)."""
    if request.client_tools is not None:
        return request.client_tools
    newest = parts.line.rows.newest
    if alone and newest is not None:
        inherits = newest.generation == generation and newest.trigger != "rpc"
        return newest.client_tools if inherits else ()
    return await inherited_tools(tx, parts.owner.agent_id, generation)


async def _find_known(tx: Transaction, agent_id: str, request: TurnRequest) -> TurnRecord | None:
    by_id = by_key = None
    if request.request_id is not None:
        by_id = await find_turn(tx, agent_id, request.request_id)
    if request.idempotency_key is not None:
        by_key = await find_turn_by_key(tx, agent_id, request.idempotency_key)
    if by_id is not None and request.idempotency_key not in (None, by_id.idempotency_key):
        raise SubmissionConflictError(
            f"The turn {by_id.request_id!r} was accepted with the idempotency key "
            f"{by_id.idempotency_key!r}, not {request.idempotency_key!r}. Use one of the two."
        )
    if by_key is not None and request.request_id not in (None, by_key.request_id):
        raise SubmissionConflictError(
            f"The idempotency key {request.idempotency_key!r} belongs to the turn "
            f"{by_key.request_id!r}, not {request.request_id!r}. Use one of the two."
        )
    if by_key is not None:
        _check_reuse(by_key, request)
    return by_id or by_key


def _check_reuse(record: TurnRecord, request: TurnRequest) -> None:
    """A key stands for one input of one principal: with another it is a mistake, or an attack."""
    digest = _digest(request)
    if digest is not None and record.input_digest not in (None, digest):
        raise SubmissionConflictError(
            f"The idempotency key {request.idempotency_key!r} was used with another input. "
            "Use a new key for each input."
        )
    if _name_of(record.principal) != _name_of(request.principal):
        raise SubmissionConflictError(
            f"The idempotency key {request.idempotency_key!r} was used by somebody else. "
            "Use a key of your own."
        )


def _name_of(principal: Principal | None) -> str | None:
    return None if principal is None else principal.id


def _digest(request: TurnRequest) -> str | None:
    """What the input of a request with an idempotency key says, whatever its ids are."""
    if request.idempotency_key is None or request.function_input:
        return None
    said = [[message["role"], message["parts"]] for message in request.messages]
    return sha256(json.canonical(said).encode()).hexdigest()


def refuse_nested(call: str, agent_id: str) -> None:
    """A blocking call from inside a turn of the same agent would wait for itself (spec/02 §3.3).

    So would one from a turn that such a turn waits for: two agents would each hold their slot and
    want that of the other.
    """
    chain: list[str] = []
    turn: WaitingTurn | None = current_turn.get()
    while turn is not None and turn.active:
        chain.insert(0, turn.record.agent_id)
        if turn.record.agent_id == agent_id:
            raise NestedTurnError(call, chain)
        turn = turn.handle.awaited_in


def is_inside_turn(agent_id: str) -> bool:
    """Whether the current code runs inside a turn of that agent."""
    turn = current_turn.get()
    return turn is not None and turn.active and turn.record.agent_id == agent_id


MessageInput: TypeAlias = str | UIMessage | NewMessage | Sequence[UIMessage | NewMessage]
"""What starts a turn: a text, a message, or several."""
_FORMS = (
    'Give a text such as "hello", a message such as {"role": "user", "content": "hello"}, or a '
    "list of messages."
)


def read_input(value: MessageInput) -> tuple[UIMessage, ...]:
    """What a program gives as input. A message without an id gets one.

    Raises `TypeError` or `ValueError` that says which forms there are.
    """
    # Checked although it is typed: bytes would be a list of numbers, a dict without an id a riddle.
    given: Any = value
    if not isinstance(given, Mapping | Sequence) or isinstance(given, bytes | bytearray):
        raise TypeError(f"{reprlib.repr(given)} is no input. {_FORMS}")
    if isinstance(given, str):
        return as_messages(given)
    messages = cast("Sequence[Any]", (given,) if isinstance(given, Mapping) else given)
    try:
        return as_messages([_with_id(message) for message in messages])
    except ValueError as error:
        raise ValueError(f"This is no input: {error}. {_FORMS}") from None


def _with_id(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return message
    return {"id": new_id(), **cast("Mapping[str, Any]", message)}


def read_question(value: MessageInput) -> tuple[UIMessage, ...]:
    """The same, but nothing where there is nothing to answer."""
    messages = read_input(value) if value != "" else ()
    return messages if any(message["parts"] for message in messages) else ()


def as_messages(value: MessageInput) -> tuple[UIMessage, ...]:
    """A text becomes a user message; messages are checked.

    Raises `ValueError` that says what is wrong.
    """
    if isinstance(value, str):
        return (user_message(new_id(), clean_text(value)),)
    messages = (value,) if isinstance(value, Mapping) else value
    return tuple(check_message(message) for message in cast("Sequence[UIMessage]", messages))


def from_client(message: UIMessage) -> UIMessage:
    """A user message from outside, without what only the server writes (DESIGN §8.12).

    Raises `ValueError` for an id that no message may have.
    """
    try:
        check_new_id(message["id"])
    except ReservedIdError as error:
        raise ValueError(str(error)) from error
    return keep_user_parts(strip_reserved_metadata(message))


def read_needed(call: str, value: MessageInput) -> tuple[UIMessage, ...]:
    """The same where nothing to answer is a mistake of the caller's: raises `ValueError`."""
    messages = read_question(value)
    if not messages:
        raise ValueError(f'{call}() needs at least one message: `await agent.{call}("hello")`.')
    return messages
