"""Asking the process that serves a database to do something, over its local socket."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from thinkwell.core import json
from thinkwell.host.control import socket_name, socket_of
from thinkwell.store.sqlite_lock import lock_holder

RESPONSE_TIMEOUT = 30.0
"""Seconds an answer may take."""


def ask(
    database: Path, request: dict[str, Any], timeout: float | None = RESPONSE_TIMEOUT
) -> dict[str, Any]:
    """What the server says. Raises `click.ClickException` if it refuses, or if there is none."""
    with _connection(database) as link:
        return _exchange(link, request, timeout)


def ask_to_stop(database: Path, timeout: float) -> tuple[int, bool]:
    """Ask for a planned stop and wait for it: the process, and whether it has ended in time."""
    with _connection(database) as link:
        pid = int(_exchange(link, {"do": "stop"})["pid"])
        link.settimeout(timeout)
        try:
            while link.recv(1024):
                pass
        except TimeoutError:
            return pid, False
        except ConnectionError:
            pass  # it has ended
    return pid, True


def is_served(database: Path) -> bool:
    """Whether a process answers for this database."""
    try:
        return bool(ask(database, {"do": "status"})["ok"])
    except click.ClickException:
        return False


def _exchange(
    link: socket.socket, request: dict[str, Any], timeout: float | None = RESPONSE_TIMEOUT
) -> dict[str, Any]:
    link.settimeout(timeout)
    try:
        link.sendall(json.dumps(request).encode() + b"\n")
        with link.makefile("rb") as lines:
            line = lines.readline()
    except OSError as error:
        raise click.ClickException(f"The server did not answer: {error}") from error
    if not line:
        raise click.ClickException("The server ended before it answered.")
    answer = json.loads(line)
    if not answer["ok"]:
        raise click.ClickException(answer["error"])
    return answer


@contextmanager
def _connection(database: Path) -> Generator[socket.socket]:
    path = socket_of(database)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        try:
            with socket_name(path) as name:
                link.connect(name)
        except PermissionError as error:
            raise click.ClickException(f"{path} belongs to another user.") from error
        except OSError as error:
            raise click.ClickException(_unserved(database)) from error
        yield link


def _unserved(database: Path) -> str:
    holder = lock_holder(database)
    if holder is None:
        return (
            f"No server has {database} open. Start one, `thinkwell serve PATH --store "
            f"sqlite:///{database}`, and try again."
        )
    return f"Process {holder} has {database} open, but does not answer on {socket_of(database)}."
