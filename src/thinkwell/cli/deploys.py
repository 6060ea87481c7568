"""`thinkwell doctor --deploy`: what is stored that new code would not understand.

Reads the database beside the process that serves it and changes nothing. The new code is loaded,
not started: no agent wakes. What depends on code that would have to run (`get_tools`, scopes, tools
that a feature makes for each turn) cannot be known here, and is a note instead of a finding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from thinkwell.agent.agent import Agent
from thinkwell.agent.instance import new_instance
from thinkwell.agent.state import shape_of
from thinkwell.agent.think import Think
from thinkwell.cli.journals import Beside
from thinkwell.cli.loading import load_app
from thinkwell.cli.operating import find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.core import json
from thinkwell.core.errors import JobError
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.jobs import JobHandlers
from thinkwell.hooks.seats import features_of
from thinkwell.journal.blobs import read_blob
from thinkwell.journal.events import CallSettled, JournalEvent, ModelAsked, Said, read_events
from thinkwell.journal.reading import read_journal
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import tool_name, tool_parts
from thinkwell.server.app import App
from thinkwell.server.options import installed_version
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.tools.changed_schema import what_changed
from thinkwell.tools.fingerprint import schema_fingerprint
from thinkwell.tools.tool import read_tools
from thinkwell.tools.typed import read_as

Kind = Literal["agents", "turn", "call", "job", "state", "outcome"]
_WAITING = ("approval-requested", "approval-responded", "input-available")


class NotUnderstood(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something stored that the new code would not understand."""

    kind: Kind
    agent: str
    """Whose it is; of `agents` the class."""
    id: str
    """The turn, the job or the call."""
    text: str
    certain: bool = True
    """False: only running the code could tell."""


class NewCode:
    """What the new code can, as far as that is known without running it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._classes: dict[str, type[Agent]] = {cls.agent_class: cls for cls in app.agents}

    def find(self, agent_id: str) -> type[Agent] | None:
        """The class of an agent."""
        return self._classes.get(agent_id.partition("/")[0])

    def schema(self, cls: type[Agent], tool: str) -> Mapping[str, Any] | None:
        """The input schema of one of its tools."""
        for owner in (cls, *(type(each) for each in self._features(cls))):
            for function, mark, schema in read_tools(owner).values():
                if (mark.name or function.__name__) == tool:
                    return schema.input_schema
        return None

    def may_bring_others(self, cls: type[Agent]) -> bool:
        """Whether code that runs in a turn may bring more tools."""
        own = issubclass(cls, Think) and cls.get_tools is not Think.get_tools
        made = any(type(each).tools is not Feature.tools for each in self._features(cls))
        return own or made

    def job_problem(self, cls: type[Agent], agent_id: str, job: str) -> tuple[str, bool] | None:
        """Why nothing would run a job, and whether that is certain."""
        agent = new_instance(cls, agent_id.partition("/")[2])
        handlers, certain = (
            JobHandlers(agent, dir(Think if issubclass(cls, Think) else Agent)),
            True,
        )
        for feature in self._features(cls):
            try:
                handlers.add(feature.name, feature.jobs())
            except Exception:  # noqa: BLE001 - it may need the kit that it gets when it wakes
                certain = certain and not job.startswith(f"{feature.name}.")
        try:
            handlers.find(job)
        except JobError as error:
            return str(error), certain
        return None

    def _features(self, cls: type[Agent]) -> tuple[Feature, ...]:
        return features_of(cls, self._app.features)


def judge_call(
    code: NewCode,
    cls: type[Agent],
    name: str,
    *,
    shown: Mapping[str, Any] | None,
    call_input: dict[str, Any],
) -> tuple[str, bool] | None:
    """Why a call would not run under the new code, and whether that is certain."""
    now = code.schema(cls, name)
    if now is None:
        if code.may_bring_others(cls):
            return f"{cls.__name__} itself has no tool {name!r}; code that runs may bring it", False
        return f"{cls.__name__} has no tool {name!r} any more", True
    change = None if shown is None else what_changed(shown, now, call_input)
    return None if change is None else (f"the tool {name!r} has changed: {change}", True)


def find_all(database: ReadOnlySqlite, code: NewCode) -> list[NotUnderstood]:
    """Everything that the new code would not understand."""
    return [
        *_classes(database, code),
        *_turns(database, code),
        *_waiting(database, code),
        *_outcomes(database, code),
        *_jobs(database, code),
        *_states(database, code),
    ]


def _classes(database: ReadOnlySqlite, code: NewCode) -> Iterator[NotUnderstood]:
    for row in database.fetch_all("agents_by_class", {}):
        if code.find(f"{row['class']}/") is None:
            count = f"{row['agents']} agent{'' if row['agents'] == 1 else 's'}"
            text = f"no class has this name, and {count} would not be served"
            yield NotUnderstood(kind="agents", agent=row["class"], id="", text=text)


def _turns(database: ReadOnlySqlite, code: NewCode) -> Iterator[NotUnderstood]:
    """Turns that have not ended, and the calls that they are about to run."""
    for row in database.fetch_all("turns_to_finish", {}):
        record = TurnRecord.from_row(row)
        about: dict[str, Any] = {"agent": record.agent_id, "id": record.request_id}
        cls = code.find(record.agent_id)
        if cls is None:
            ended = "parked" if record.settled else record.status
            yield NotUnderstood(kind="turn", **about, text=f"its class is gone; it is {ended}")
        elif not record.settled:
            for problem, certain in asyncio.run(_open_calls(database, record, code, cls)):
                yield NotUnderstood(kind="turn", **about, text=problem, certain=certain)


async def _open_calls(
    database: ReadOnlySqlite, record: TurnRecord, code: NewCode, cls: type[Agent]
) -> list[tuple[str, bool]]:
    beside = Beside(database)
    events = read_events(await read_journal(beside, record))
    asked = [each for each in events if isinstance(each, ModelAsked)]
    text = await read_blob(beside, asked[-1].tools) if asked and asked[-1].tools else None
    shown = {spec["name"]: spec["input_schema"] for spec in json.loads(text or "[]")}
    found = [
        judge_call(
            code,
            cls,
            chunk["toolName"],
            shown=shown.get(chunk["toolName"]),
            call_input=chunk["input"],
        )
        for chunk in _unsettled_calls(events)
        if not record.declares(chunk["toolName"])
    ]
    return [problem for problem in found if problem is not None]


def _unsettled_calls(events: list[JournalEvent]) -> list[dict[str, Any]]:
    """The calls of a journal whose input is complete and that have no result."""
    calls: dict[str, dict[str, Any]] = {}
    for event in events:
        if isinstance(event, CallSettled):
            calls.pop(event.call_id, None)
        elif isinstance(event, Said):
            chunk, call_id = event.chunk, str(event.chunk.get("toolCallId"))
            if chunk["type"] == "tool-input-available" and not chunk.get("providerExecuted"):
                calls[call_id] = chunk
            elif chunk["type"].startswith("tool-output") and not chunk.get("preliminary"):
                calls.pop(call_id, None)
    return list(calls.values())


def _waiting(database: ReadOnlySqlite, code: NewCode) -> Iterator[NotUnderstood]:
    """Calls that wait for a person or a client, in conversations that have not gone on."""
    for row in database.fetch_all("replies_that_wait", {}):
        cls = code.find(row["agent"])
        if cls is None:
            continue  # said already
        of_reply = {"agent": row["agent"], "message_id": row["message_id"]}
        rows = database.fetch_all("approvals_of_message", of_reply)
        asked = {each["tool_call_id"]: each["schema_hash"] for each in rows}
        declared = {each.get("name") for each in json.loads(row["client_tools"] or "[]")}
        for part in tool_parts(json.loads(row["content"])):
            if part["state"] not in _WAITING or tool_name(part) in declared:
                continue
            problem = _judge_waiting(code, cls, tool_name(part), asked.get(part["toolCallId"]))
            if problem is not None:
                whom = "a client" if part["state"] == "input-available" else "a person"
                text = f"it waits for {whom}, and {problem[0]}"
                about: dict[str, Any] = {"agent": row["agent"], "id": part["toolCallId"]}
                yield NotUnderstood(kind="call", **about, text=text, certain=problem[1])


def _judge_waiting(
    code: NewCode, cls: type[Agent], name: str, asked: str | None
) -> tuple[str, bool] | None:
    """A client runs its calls itself; an approval is for the schema that was `asked` about."""
    now = code.schema(cls, name)
    if now is None or asked is None:
        return judge_call(code, cls, name, shown=None, call_input={})
    changed = schema_fingerprint(now) != asked
    return (f"the input schema of {name!r} has changed", True) if changed else None


def _outcomes(database: ReadOnlySqlite, code: NewCode) -> Iterator[NotUnderstood]:
    """Calls with an unknown outcome that nobody could ask about any more."""
    for row in database.fetch_all("unknown_outcomes", {"agent": None, "limit": -1}):
        cls = code.find(row["agent"])
        if cls is not None and code.schema(cls, row["tool_name"]) is None:
            text = f"its outcome is unknown, and {cls.__name__} has no tool {row['tool_name']!r}"
            about: dict[str, Any] = {"agent": row["agent"], "id": row["call_id"]}
            yield NotUnderstood(kind="outcome", **about, text=text, certain=False)


def _jobs(database: ReadOnlySqlite, code: NewCode) -> Iterator[NotUnderstood]:
    for row in database.fetch_all("jobs_to_finish", {}):
        about: dict[str, Any] = {"agent": row["agent"], "id": row["id"]}
        cls = code.find(row["agent"])
        if cls is None:
            yield NotUnderstood(
                kind="job", **about, text=f"its class is gone; the job is {row['name']!r}"
            )
        elif (problem := code.job_problem(cls, row["agent"], row["name"])) is not None:
            yield NotUnderstood(kind="job", **about, text=problem[0], certain=problem[1])


def _states(database: ReadOnlySqlite, code: NewCode) -> Iterator[NotUnderstood]:
    for row in database.fetch_all("agent_states", {}):
        cls = code.find(row["id"])
        shape = None if cls is None else shape_of(cls)
        if shape is None:
            continue
        try:
            read_as(shape, json.loads(row["state"]), "the stored state")
        except ValueError as error:
            yield NotUnderstood(kind="state", agent=row["id"], id="", text=str(error))


def examine_deploy(store: str, path: str, *, as_json: bool) -> bool:
    """`thinkwell doctor --deploy PATH`. Whether the new code understands all that is stored."""
    app = load_app(path)
    with opened(store) as database:
        findings = find_all(database, NewCode(app))
    report = {
        "database": str(find_database(store)),
        "app": path,
        "version": app.version or installed_version(app.agents),
        "findings": [msgspec.to_builtins(each) for each in findings],
    }
    printer = Printer()
    if as_json:
        printer.json(report)
    else:
        printer.deploy(path, [each for each in findings if each.certain], certain=True)
        printer.deploy(path, [each for each in findings if not each.certain], certain=False)
    return not any(each.certain for each in findings)
