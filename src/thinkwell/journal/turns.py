"""Turn rows: the durable record of one admitted execution, and the few statements that move it on.

Every change is conditional on the state it expects and says how many rows it moved, so a late
finish can never overwrite a cancel, whatever interleaves. Stored format: change only with a
migration.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.principal import Principal, load_principal
from thinkwell.journal.budget import Incident
from thinkwell.messages.message import UIMessage
from thinkwell.messages.usage import Usage
from thinkwell.store.base import Reader, Row, Transaction

log = logging.getLogger("thinkwell.journal")

EndStatus: TypeAlias = Literal["completed", "error", "aborted", "skipped"]
"""How a turn can end."""
TurnStatus: TypeAlias = Literal["accepted", "running", "completed", "error", "aborted", "skipped"]
"""How a turn can stand: it waits, it runs, or one of the ends."""
Trigger: TypeAlias = Literal[
    "ws-chat", "programmatic", "submission", "rpc", "auto-continuation", "http-chat"
]
StopReason: TypeAlias = Literal[
    "end",
    "max_steps",
    "stop_when",
    "client_tool",
    "approval",
    "steered",
    "length",
    "content-filter",
    "other",
    "aborted",
    "error",
    "parked",
    "cleared",
    "superseded",
    "caller_lost",
]
"""Why a turn ended."""
ROOT = ""
"""As `branch_from`: the input begins the conversation anew, beside what is there."""
RETRIED = ":retry"
"""What the id of a turn has at its end that repeats another one; `list_turns` knows it too."""
UNREADABLE = "What is stored of this turn is damaged, so it could not be answered."
UNSETTLED: tuple[TurnStatus, ...] = ("accepted", "running")


class Forked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the tools of a fork behave: calls that its source made have their recorded results."""

    turn: str
    """The turn of this agent whose ledger holds those results."""
    tools: Literal["ask", "deny", "live"] = "ask"
    """What becomes of all other calls."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What `run` was given for one turn instead of the agent's settings, as far as it is data."""

    model: str | tuple[str, ...] | None = None
    """The model's name, or those of a fallback chain."""
    max_steps: int | None = None
    output: dict[str, Any] | None = None
    """The structured output it must give (`Output.to_json`)."""
    system: str | None = None
    """The system prompt, in the place of the agent's own."""
    fork: Forked | None = None
    live: tuple[str, ...] = ()
    """What was given as well and cannot be stored, in words."""


class TurnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `turns`."""

    agent_id: str
    request_id: str
    trigger: Trigger
    status: TurnStatus
    generation: int
    """The agent's generation at acceptance; a clear moves it on and makes waiting turns stale."""
    continuation: bool = False
    input: tuple[UIMessage, ...] = ()
    """Messages that join the tree when the turn gets its slot."""
    input_digest: str | None = None
    """What the input said, of a turn with an idempotency key: the key stands for nothing else."""
    branch_from: str | None = None
    """The message the reply goes under: given for a regenerate, otherwise fixed when the turn
    starts.
    """
    function_input: bool = False
    """The input is made by a function of the caller inside the slot, so it dies with the caller."""
    not_before: float | None = None
    """A debounced turn waits until then for a later one that takes its place."""
    steer: bool = False
    """The running turn makes room for it at its next step."""
    read_only: bool = False
    """Asked for by a connection that must not change the agent's state."""
    principal: Principal | None = None
    """Who asked for it."""
    body: dict[str, Any] | None = None
    """Custom fields of the client's request."""
    chosen: Chosen | None = None
    """What holds for this turn only."""
    client_tools: tuple[dict[str, Any], ...] = ()
    """Tools the client declared and answers; continuations use them too."""
    root: str | None = None
    """The turn that a continuation goes on with or a retry repeats: the first one of the chain."""
    idempotency_key: str | None = None
    metadata: dict[str, Any] | None = None
    message_id: str | None = None
    """The reply's id, fixed when the turn starts."""
    message_ids: tuple[str, ...] = ()
    """The user messages this turn answers, as its client named them."""
    attempt: int = 0
    incident: Incident = msgspec.field(default_factory=Incident)
    """What is remembered of its attempts, to know when to give it up."""
    journal_start: int | None = None
    cancel_requested: str | None = None
    error: str | None = None
    client_error: str | None = None
    """The error as clients are told it."""
    stop_reason: StopReason | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    steps: int = 0
    hooks_owed: int = 0
    """How often the response hooks may still be tried; 0 when they have run."""
    continuation_owed: bool = False
    """A client asked to go on once every open call of the reply has its result."""
    output: Any = None
    """The validated structured output."""
    created_at: float = 0.0
    started_at: float | None = None
    settled_at: float | None = None
    code: str | None = None
    """The code under which it was accepted (`journal/code_version.py`)."""

    @property
    def settled(self) -> bool:
        """Whether the turn has ended."""
        return self.status not in UNSETTLED

    @property
    def root_id(self) -> str:
        """What the keys of its calls are made of: the same in continuations and retries."""
        return self.root or self.request_id

    @property
    def repeats(self) -> list[str]:
        """The turns that this one is a retry of, the latest first."""
        ids: list[str] = []
        earlier = self.request_id if self.root is not None else ""
        while earlier.endswith(RETRIED):
            earlier = earlier.removesuffix(RETRIED)
            ids.append(earlier)
        return ids

    def unless_accepted_by(self, code: str | None) -> str | None:
        """The code, if the turn was accepted under another one."""
        return None if code == self.code else code

    def declares(self, tool_name: str) -> bool:
        """Whether the client said that it has a tool of that name."""
        return any(said.get("name") == tool_name for said in self.client_tools)

    @classmethod
    def from_row(cls, row: Row) -> TurnRecord:
        """Read a row of `turns`."""
        options: dict[str, Any] = _load(row["options"]) or {}
        return cls(
            agent_id=row["agent"],
            request_id=row["id"],
            trigger=row["trigger"],
            status=row["status"],
            generation=row["generation"],
            continuation=bool(row["continuation"]),
            input=tuple(_load(row["input"]) or ()),
            input_digest=options.get("inputDigest"),
            branch_from=options.get("branchFrom"),
            function_input=options.get("functionInput", False),
            not_before=options.get("notBefore"),
            steer=options.get("steer", False),
            read_only=options.get("readOnly", False),
            chosen=_chosen(options.get("chosen")),
            root=options.get("root"),
            principal=load_principal(row["principal"]),
            body=_load(row["body"]),
            client_tools=tuple(_load(row["client_tools"]) or ()),
            idempotency_key=row["idempotency_key"],
            metadata=_load(row["metadata"]),
            message_id=row["message_id"],
            message_ids=tuple(_load(row["message_ids"]) or ()),
            attempt=row["attempt"],
            incident=msgspec.convert(_load(row["incident"]) or {}, Incident),
            journal_start=row["journal_start"],
            cancel_requested=row["cancel_requested"],
            error=row["error"],
            client_error=row["client_error"],
            stop_reason=row["stop_reason"],
            usage=msgspec.convert(_load(row["usage"]) or {}, Usage),
            steps=row["steps"],
            hooks_owed=row["hooks_owed"],
            continuation_owed=bool(row["continuation_owed"]),
            output=_load(row["output"]),
            created_at=row["created_at"],
            started_at=row["started_at"],
            settled_at=row["settled_at"],
            code=row["code"],
        )


class TurnGoneError(Exception):
    """The turn ended before it could go on: a clear was faster. Never leaves `turn/`."""


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended: what the settling transaction writes on its row."""

    status: EndStatus
    stop_reason: StopReason
    error: str | None = None
    client_error: str | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    spent: Mapping[str, Usage] = MappingProxyType({})
    """The same by model, as `provider:name`."""
    steps: int = 0
    hooks_owed: int = 0
    output: Any = None


async def insert_turn(tx: Transaction, record: TurnRecord) -> None:
    """Accept: write the row. The caller has checked ids and keys in the same transaction."""
    await tx.execute(
        "insert_turn",
        {
            "agent": record.agent_id,
            "id": record.request_id,
            "trigger": record.trigger,
            "status": record.status,
            "generation": record.generation,
            "continuation": int(record.continuation),
            "input": json.dumps(record.input) if record.input else None,
            "options": _options(record),
            "body": _dump(record.body),
            "client_tools": _dump(record.client_tools) if record.client_tools else None,
            "message_id": record.message_id,
            "idempotency_key": record.idempotency_key,
            "metadata": _dump(record.metadata),
            "message_ids": json.dumps(record.message_ids) if record.message_ids else None,
            "principal": None if record.principal is None else json.dumps(record.principal),
            "created_at": record.created_at,
            "attempt": record.attempt,
            "incident": json.dumps(record.incident) if record.attempt else None,
            "journal_start": record.journal_start,
            "started_at": record.started_at,
            "code": record.code,
        },
    )
    class_name, _, _ = record.agent_id.partition("/")
    await tx.execute(
        "touch_conversation",
        {"agent": record.agent_id, "class": class_name, "updated_at": record.created_at},
    )


async def find_turn(reader: Reader, agent_id: str, request_id: str) -> TurnRecord | None:
    """The turn with that request id."""
    row = await reader.fetch_one("turn_by_id", {"agent": agent_id, "id": request_id})
    return None if row is None else TurnRecord.from_row(row)


async def find_turn_by_key(reader: Reader, agent_id: str, key: str) -> TurnRecord | None:
    """The turn with that idempotency key."""
    row = await reader.fetch_one("turn_by_key", {"agent": agent_id, "key": key})
    return None if row is None else TurnRecord.from_row(row)


async def newest_turn(reader: Reader, agent_id: str) -> TurnRecord | None:
    """The turn accepted last."""
    row = await reader.fetch_one("newest_turn", {"agent": agent_id})
    return None if row is None else _readable(row)


async def inherited_tools(
    reader: Reader, agent_id: str, generation: int
) -> tuple[dict[str, Any], ...]:
    """The client tools of the turn accepted last, unless they were for that turn only (§2.2)."""
    row = await reader.fetch_one("newest_client_tools", {"agent": agent_id})
    if row is None or row["generation"] != generation or row["trigger"] == "rpc":
        return ()
    return tuple(_load(row["client_tools"]) or ())


async def unsettled_turns(reader: Reader, agent_id: str) -> list[TurnRecord]:
    """Turns that have not ended, in the order they were accepted. Unreadable rows are left out."""
    rows = await reader.fetch_all("unsettled_turns", {"agent": agent_id})
    return [record for row in rows if (record := _readable(row)) is not None]


async def unreadable_turns(reader: Reader, agent_id: str) -> list[str]:
    """Ids of unsettled turns whose rows cannot be decoded."""
    rows = await reader.fetch_all("unsettled_turns", {"agent": agent_id})
    return [row["id"] for row in rows if _readable(row) is None]


async def turns_owing_hooks(reader: Reader, agent_id: str) -> list[TurnRecord]:
    """Settled turns whose response hooks have not run."""
    rows = await reader.fetch_all("turns_owing_hooks", {"agent": agent_id})
    return [record for row in rows if (record := _readable(row)) is not None]


async def agents_with_work(reader: Reader) -> list[str]:
    """Agents that must be awake: they have an unsettled turn."""
    return [row["agent"] for row in await reader.fetch_all("agents_with_work", {})]


async def agents_owing_hooks(reader: Reader) -> list[str]:
    """Agents with a settled turn whose response hooks have not run."""
    return [row["agent"] for row in await reader.fetch_all("agents_owing_hooks", {})]


async def all_agents(reader: Reader) -> list[str]:
    """The ids of all agents."""
    return [row["id"] for row in await reader.fetch_all("all_agents", {})]


async def has_work(reader: Reader, agent_id: str) -> bool:
    """Whether this agent must be awake."""
    return await reader.fetch_one("agent_with_work", {"agent": agent_id}) is not None


async def mark_attempt(
    tx: Transaction, record: TurnRecord, *, now: float, seq: int, code: str | None = None
) -> TurnRecord:
    """One more attempt begins in the journal; the row as it has to be then.

    `code` is what runs it; the journal says so if that is not what accepted the turn.
    """
    attempt = record.attempt + 1
    marker = await tx.fetch_one(
        "mark_journal",
        {
            "agent": record.agent_id,
            "turn": record.request_id,
            "seq": seq,
            "kind": "attempt",
            "body": attempt_body(attempt, now, record.unless_accepted_by(code)),
        },
    )
    if marker is None:
        raise RuntimeError("the store returned no position for a journal row")
    start = record.journal_start if record.journal_start is not None else marker["pos"]
    return msgspec.structs.replace(
        record,
        status="running",
        attempt=attempt,
        journal_start=start,
        started_at=record.started_at or now,
    )


async def start_attempt(
    tx: Transaction, record: TurnRecord, *, now: float, seq: int, code: str | None = None
) -> TurnRecord:
    """One more attempt begins: mark the row running, note where its journal starts.

    Raises `TurnGoneError` if the turn has ended; the caller's transaction must not commit then.
    """
    running = await mark_attempt(tx, record, now=now, seq=seq, code=code)
    changed = await tx.execute(
        "start_attempt",
        {
            "agent": running.agent_id,
            "id": running.request_id,
            "attempt": running.attempt,
            "incident": json.dumps(running.incident),
            "message_id": running.message_id,
            "options": _options(running),
            "journal_start": running.journal_start,
            "started_at": running.started_at,
        },
    )
    if changed == 0:
        raise TurnGoneError(record.request_id)
    return running


def attempt_body(attempt: int, now: float, code: str | None = None) -> str:
    """The journal's record of an attempt that begins. Stored format (`journal/events.py`)."""
    body: dict[str, Any] = {"attempt": attempt, "at": now}
    if code is not None:
        body["code"] = json.loads(code)
    return json.dumps(body)


async def store_incident(tx: Transaction, record: TurnRecord) -> None:
    """What is remembered of a turn's attempts has changed while it runs."""
    key = {"agent": record.agent_id, "id": record.request_id}
    await tx.execute("mark_places", {**key, "incident": json.dumps(record.incident)})


async def mark_places(tx: Transaction, record: TurnRecord, places: tuple[str, ...]) -> None:
    """The turn is about to go where it may take the process down."""
    incident = msgspec.structs.replace(record.incident, places=places)
    await store_incident(tx, msgspec.structs.replace(record, incident=incident))


async def unsettled_ids(reader: Reader, agent_id: str, *, before: int) -> list[str]:
    """Ids of the turns of earlier generations that have not ended, readable or not."""
    rows = await reader.fetch_all("unsettled_ids", {"agent": agent_id, "before": before})
    return [row["id"] for row in rows]


async def settle_turn(
    tx: Transaction,
    key: tuple[str, str],
    end: TurnEnd,
    *,
    now: float,
    waiting: bool = False,
) -> bool:
    """The one statement that ends a turn. False if it had ended already.

    `key` is its agent and its id; `waiting`: only if it has not begun.
    """
    agent_id, request_id = key
    changed = await tx.execute(
        "settle_turn",
        {
            "agent": agent_id,
            "id": request_id,
            "begun": "accepted" if waiting else "running",
            "status": end.status,
            "stop_reason": end.stop_reason,
            "error": end.error,
            "client_error": end.client_error,
            "usage": json.dumps(end.usage.known),
            "spent": _spent(end.spent) if end.spent else None,
            "steps": end.steps,
            "hooks_owed": end.hooks_owed,
            "output": None if end.output is None else json.dumps(json.to_jsonable(end.output)),
            "settled_at": now,
        },
    )
    return changed == 1


async def request_cancel(tx: Transaction, agent_id: str, request_id: str, reason: str) -> bool:
    """Record that somebody wants the turn to stop. False if there is nothing to stop."""
    changed = await tx.execute(
        "request_cancel", {"agent": agent_id, "id": request_id, "reason": reason}
    )
    return changed == 1


async def owe_continuation(tx: Transaction, agent_id: str, message_id: str) -> None:
    """A client asked to go on with this reply once all its open calls have results."""
    await tx.execute("owe_continuation", {"agent": agent_id, "message_id": message_id})


async def answering_turn(reader: Reader, agent_id: str, message_id: str) -> TurnRecord | None:
    """The newest turn that wrote this reply."""
    row = await reader.fetch_one("answering_turn", {"agent": agent_id, "message_id": message_id})
    return None if row is None else TurnRecord.from_row(row)


async def turns_of_message(reader: Reader, agent_id: str, message_id: str) -> list[TurnRecord]:
    """Every turn that wrote this reply, the first one first."""
    rows = await reader.fetch_all("turns_of_message", {"agent": agent_id, "message_id": message_id})
    return [TurnRecord.from_row(row) for row in rows]


async def set_hooks_owed(tx: Transaction, record: TurnRecord, owed: int) -> None:
    """How often the response hooks may still be tried."""
    await tx.execute(
        "set_hooks_owed", {"agent": record.agent_id, "id": record.request_id, "owed": owed}
    )


def _options(record: TurnRecord) -> str:
    """What few turns have; only what this one has is written, with every row."""
    options = {
        "branchFrom": record.branch_from,
        "functionInput": record.function_input,
        "notBefore": record.not_before,
        "steer": record.steer,
        "readOnly": record.read_only,
        "inputDigest": record.input_digest,
        "chosen": record.chosen,
        "root": record.root,
    }
    # Not by truth: ROOT as `branchFrom` is an empty text.
    chosen = {name: given for name, given in options.items() if given not in (None, False)}
    return json.dumps(chosen)


def _chosen(stored: dict[str, Any] | None) -> Chosen | None:
    return None if stored is None else msgspec.convert(stored, Chosen)


def _readable(row: Row) -> TurnRecord | None:
    """The record, or None if the row is damaged: one bad row must not take the others along."""
    try:
        return TurnRecord.from_row(row)
    except (ValueError, TypeError, AttributeError):
        log.critical("a turn cannot be read", exc_info=True, extra={"turn": row["id"]})
        return None


def _spent(spent: Mapping[str, Usage]) -> str:
    return json.dumps({model: usage.known for model, usage in spent.items()})


def _load(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _dump(value: dict[str, Any] | Sequence[Any] | None) -> str | None:
    return None if value is None else json.dumps(cast("Any", value))
