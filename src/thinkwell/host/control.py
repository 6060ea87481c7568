"""The local socket through which the command line acts on a running host.

A second process may not open the database for writing, so it asks the one that has: one line of
JSON, one line of JSON back. The socket lies beside the database (`<database>.sock`) and only its
owner may use it (mode 0600). Whoever starts a control holds the store's lock, so a socket that is
there already was left by a process that died.

    {"do": "status"}                                      -> {"ok": true, "pid": 7, ...}
    {"do": "stop"}                                        -> {"ok": true}, then its end

What else there is to ask for is in `commands.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import stat
from collections.abc import Callable, Generator
from pathlib import Path
from typing import cast

from thinkwell.core import json
from thinkwell.core.errors import ThinkwellError
from thinkwell.core.tasks import TaskOwner
from thinkwell.host.commands import Commands, JsonObject
from thinkwell.host.host import Host

log = logging.getLogger("thinkwell.host")

LONGEST_NAME = 100
"""Bytes of a path that every system takes as the name of a socket."""
LONGEST_REQUEST = 64 * 1024


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
        self._commands = Commands(host)

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
        verb = self._commands.verbs.get(str(request.get("do")))
        if verb is None:
            return _refusal(f"This server does not know {request.get('do')!r}.")
        try:
            return {"ok": True, **await verb(request)}
        except (ThinkwellError, LookupError, ValueError) as error:
            return _refusal(json.error_text(error))
        except Exception as error:  # whoever asked must hear of it, and so must the log
            log.exception("a command failed", extra={"action": "control"})
            return _refusal(f"The server failed: {error!r}")


async def _read(reader: asyncio.StreamReader) -> JsonObject | None:
    """What is asked for; None if nobody can read it."""
    try:
        request = json.loads(await reader.readline())
    except (ValueError, RecursionError):  # too long is a ValueError too
        return None
    return cast("JsonObject", request) if isinstance(request, dict) else None


def _refusal(text: str) -> JsonObject:
    return {"ok": False, "error": text}
