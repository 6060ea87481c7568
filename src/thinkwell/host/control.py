"""The local socket through which the command line acts on a running host.

A second process may not open the database for writing, so it asks the one that has: one line of
JSON, one line of JSON back. The socket lies beside the database (`<database>.sock`) and only its
owner may use it (mode 0600). Whoever starts a control holds the store's lock, so a socket that is
there already was left by a process that died.

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
    {"do": "stop"}                                        -> {"ok": true}, then its end
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import stat
from collections.abc import Awaitable, Callable, Generator, Mapping
from pathlib import Path
from typing import Any, cast

from thinkwell.core import json
from thinkwell.core.errors import ThinkwellError
from thinkwell.core.tasks import TaskOwner
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.journal.operating import PAUSED, Which

log = logging.getLogger("thinkwell.host")

LONGEST_NAME = 100
"""Bytes of a path that every system takes as the name of a socket."""
LONGEST_REQUEST = 64 * 1024
STOPPED_BY_HAND = "stopped from the command line"
JsonObject = dict[str, Any]


def socket_of(database: Path) -> Path:
    """Where the socket of a database is."""
    return database.with_name(f"{database.name}.sock")


@contextlib.contextmanager
def socket_name(path: Path) -> Generator[str]:
    """The name by which the system takes a path: a long one is reached through its open folder."""
    name = str(path.absolute())
    if len(os.fsencode(name)) <= LONGEST_NAME:
        yield name
        return
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


async def control_of(host: Host, database: Path | None) -> Control | None:
    """The control of a host, listening; None where there is no file or no such socket."""
    if database is None or not hasattr(socket, "AF_UNIX"):
        return None
    control = Control(host, database)
    await control.start()
    return control


def stop_this_process() -> None:
    """A planned stop, as if somebody had sent the signal."""
    os.kill(os.getpid(), signal.SIGTERM)


class Control:
    """Answers the command line of this machine."""

    def __init__(
        self, host: Host, database: Path, *, stop: Callable[[], None] = stop_this_process
    ) -> None:
        self._host = host
        self._path = socket_of(database)
        self._stop = stop
        self._server: asyncio.Server | None = None
        self._tasks = TaskOwner("control")
        self._verbs: Mapping[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
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
        }

    async def start(self) -> None:
        """Listen. An app without its command line is better than none: a failure is only logged."""
        try:
            listening = self._bind()
        except OSError as error:
            log.warning(
                "the command line cannot reach this process: %s",
                error,
                extra={"action": "control", "path": str(self._path)},
            )
            return
        self._server = await asyncio.start_unix_server(
            self._accept, sock=listening, limit=LONGEST_REQUEST
        )

    def leave(self) -> None:
        """Listen no more and remove the socket."""
        if self._server is not None:
            self._server.close()
            self._server = None
            with contextlib.suppress(OSError):
                self._path.unlink()

    async def close(self) -> None:
        """Whoever waits for the stop sees the end of it."""
        self.leave()
        await self._tasks.close()

    def _bind(self) -> socket.socket:
        if self._path.exists() and not stat.S_ISSOCK(self._path.lstat().st_mode):
            raise FileExistsError(f"{self._path} is no socket")
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # from its first moment on it is nobody else's
        try:
            with socket_name(self._path) as name:
                listening.bind(name)
        except BaseException:
            listening.close()
            raise
        finally:
            os.umask(before)
        return listening

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.spawn(self._serve(reader, writer), name="request")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            try:
                request = await _read(reader)
                stops = request is not None and request.get("do") == "stop"
                answer = {"ok": True, "pid": os.getpid()} if stops else await self._do(request)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
                if stops:
                    await self._host.plan_the_end()  # not every program handles the signal
                    self._stop()
                    await reader.read()  # until they leave, or we end
            finally:
                writer.close()

    async def _do(self, request: JsonObject | None) -> JsonObject:
        if request is None:
            return _refusal(f"Send one JSON object in a line of at most {LONGEST_REQUEST} bytes.")
        verb = self._verbs.get(str(request.get("do")))
        if verb is None:
            return _refusal(f"This server does not know {request.get('do')!r}.")
        try:
            return {"ok": True, **await verb(request)}
        except (ThinkwellError, LookupError, ValueError) as error:
            return _refusal(json.error_text(error))
        except Exception as error:  # whoever asked must hear of it, and so must the log
            log.exception("a command failed", extra={"action": "control"})
            return _refusal(f"The server failed: {error!r}")

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


async def _read(reader: asyncio.StreamReader) -> JsonObject | None:
    """What is asked for; None if nobody can read it."""
    try:
        request = json.loads(await reader.readline())
    except (ValueError, RecursionError):  # too long is a ValueError too
        return None
    return cast("JsonObject", request) if isinstance(request, dict) else None


def _refusal(text: str) -> JsonObject:
    return {"ok": False, "error": text}


def _address(request: JsonObject) -> AgentAddress:
    class_name, _, name = str(request.get("agent", "")).partition("/")
    return AgentAddress(class_name, name)
