"""What the command line may ask of a running host, by name. `control.py` has the socket.

{"do": "status"}                                      -> {"ok": true, "pid": 7, ...}
{"do": "retry", "agent": "assistant/a", "turn": "t1"} -> {"ok": true, "turn": "t1:retry"}
{"do": "cancel", "agent": ..., "turn": ...}           -> {"ok": true, "stopped": true}
{"do": "cancel_job", "agent": ..., "job": ...}        -> {"ok": true, "cancelled": true}
{"do": "retry_job", "agent": ..., "job": ...}         -> {"ok": true, "waits": true}
{"do": "decide", "agent": ..., "approval": ..., "approved": true}
                                                      -> {"ok": true, "decided": true}
{"do": "revoke_rule", "agent": ..., "rule": ...}      -> {"ok": true, "revoked": true}
{"do": "run_schedule", "agent": ..., "job": ...}      -> {"ok": true, "run": "id"}
{"do": "delete", "agent": ...}                        -> {"ok": true, "deleted": true}
{"do": "stop_turns", "agent": ..., "turn": ...}       -> {"ok": true, "turns": 3}
{"do": "pause", "agent": ..., "reason": ...}          -> {"ok": true, "paused": true}
{"do": "resume", "agent": ...}                        -> {"ok": true, "resumed": true}
{"do": "erase", "principal": ...}                     -> {"ok": true, "erased": true}
{"do": "import", "file": ..., "agent": ...}           -> {"ok": true, "agent": ..., "rows": 7}
{"do": "fork", "agent": ..., "turn": ..., "at": 2}    -> {"ok": true, "agent": ..., "turn": ...}
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from thinkwell.core.errors import TurnNotFoundError
from thinkwell.host.client import AgentAddress
from thinkwell.host.forking import ForkOptions
from thinkwell.host.host import Host
from thinkwell.journal.operating import PAUSED, Which
from thinkwell.journal.turns import find_turn

STOPPED_BY_HAND: Final = "stopped from the command line"
JsonObject = dict[str, Any]


class Commands:
    """Carries out what is asked for. Each takes the request and gives the fields of its answer."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.verbs: Mapping[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "status": self._status,
            "retry": self._retry,
            "cancel": self._cancel,
            "resolve": self._resolve,
            "cancel_job": self._cancel_job,
            "retry_job": self._retry_job,
            "decide": self._decide,
            "revoke_rule": self._revoke_rule,
            "run_schedule": self._run_schedule,
            "delete": self._delete,
            "stop_turns": self._stop_turns,
            "pause": self._pause,
            "resume": self._resume,
            "erase": self._erase,
            "import": self._import,
            "fork": self._fork,
        }

    async def _status(self, _: JsonObject) -> JsonObject:
        return {"pid": os.getpid(), **self._host.status()}

    async def _retry(self, request: JsonObject) -> JsonObject:
        address, turn = _address(request), str(request["turn"])
        slept = self._host.start_again(address)
        activation = await self._host.agent(address, create=False)
        with activation.in_use():
            if slept and await activation.goes_on(turn):
                return {"turn": turn}
            return {"turn": await activation.retry_turn(turn)}

    async def _cancel(self, request: JsonObject) -> JsonObject:
        activation = await self._host.agent(_address(request), create=False)
        with activation.in_use():
            stopped = await activation.cancel_turn(str(request["turn"]), STOPPED_BY_HAND)
        return {"stopped": stopped}

    async def _resolve(self, request: JsonObject) -> JsonObject:
        """An operator says what came of a call whose outcome nobody knew."""
        said: dict[str, Any] = (
            {"not_done": True} if request.get("notDone") is True else {"output": request["output"]}
        )
        activation = await self._host.agent(_address(request), create=False)
        with activation.in_use():
            return {"resolved": await activation.resolve_outcome(str(request["call"]), **said)}

    async def _cancel_job(self, request: JsonObject) -> JsonObject:
        awake = await self._host.with_jobs(str(request["agent"]))
        with awake.in_use():
            return {"cancelled": await awake.desk.cancel(str(request["job"]), STOPPED_BY_HAND)}

    async def _retry_job(self, request: JsonObject) -> JsonObject:
        self._host.start_again(_address(request))
        awake = await self._host.with_jobs(str(request["agent"]))
        with awake.in_use():
            return {"waits": await awake.desk.revive(str(request["job"]))}

    async def _decide(self, request: JsonObject) -> JsonObject:
        activation = await self._host.agent(_address(request), create=False)
        with activation.in_use():
            approvals, question = activation.approvals(), str(request["approval"])
            if request.get("always"):
                rule = await approvals.allow_always(question, arguments=None, by=None)
                return {"decided": rule is not None, "rule": None if rule is None else rule.id}
            reason = request.get("reason")
            decided = await approvals.respond(
                question,
                approved=request.get("approved") is True,
                reason=None if reason is None else str(reason),
            )
            return {"decided": decided}

    async def _revoke_rule(self, request: JsonObject) -> JsonObject:
        activation = await self._host.agent(_address(request), create=False)
        with activation.in_use():
            return {"revoked": await activation.approvals().revoke(str(request["rule"]))}

    async def _run_schedule(self, request: JsonObject) -> JsonObject:
        awake = await self._host.with_jobs(str(request["agent"]))
        with awake.in_use():
            run = await awake.desk.run_now(str(request["job"]))
        if run is None:
            raise LookupError("It is not there any more.")
        return {"run": run.id}

    async def _delete(self, request: JsonObject) -> JsonObject:
        return {"deleted": await self._host.delete(_address(request))}

    async def _stop_turns(self, request: JsonObject) -> JsonObject:
        which = Which(agent=request.get("agent"), turn=request.get("turn"))
        return {"turns": await self._host.operators.stop_turns(which, STOPPED_BY_HAND)}

    async def _pause(self, request: JsonObject) -> JsonObject:
        reason = str(request.get("reason") or PAUSED)
        return {"paused": await self._host.operators.pause(_address(request).id, reason)}

    async def _resume(self, request: JsonObject) -> JsonObject:
        return {"resumed": await self._host.operators.resume(_address(request).id)}

    async def _erase(self, request: JsonObject) -> JsonObject:
        await self._host.erase(str(request["principal"]))
        return {"erased": True}

    async def _import(self, request: JsonObject) -> JsonObject:
        agent, named = request.get("agent"), Path(str(request["file"]))
        agent_id, rows = await self._host.import_agent(named, None if agent is None else str(agent))
        return {"agent": agent_id, "rows": rows}

    async def _fork(self, request: JsonObject) -> JsonObject:
        address, turn = _address(request), str(request["turn"])
        record = await find_turn(self._host.store, address.id, turn)
        if record is None:
            raise TurnNotFoundError(turn)
        names = ForkOptions.__struct_fields__
        given = {name: request[name] for name in names if request.get(name) is not None}
        fork = await self._host.fork(record, msgspec.convert(given, ForkOptions))
        return {"agent": fork.agent, "turn": fork.request_id}


def _address(request: JsonObject) -> AgentAddress:
    class_name, _, name = str(request.get("agent", "")).partition("/")
    return AgentAddress(class_name, name)
