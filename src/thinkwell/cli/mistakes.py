"""What is wrong with the program that a command was given, as lines for the terminal.

A mistake that the library found is one line, with the place in the user's file. Anything else that
the user's code raises is shown with its traceback, from the user's first line on: how the command
got there says nothing.
"""

from __future__ import annotations

import asyncio
import os
import sysconfig
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import click

import thinkwell
from thinkwell.agent.think import Think
from thinkwell.core.errors import ConfigurationError, ThinkwellError
from thinkwell.core.user_code import raised_in
from thinkwell.models.fallback import close_model
from thinkwell.models.resolve import resolve_model

_OURS = str(Path(thinkwell.__file__).parent) + os.sep
_PYTHONS = sysconfig.get_path("stdlib") + os.sep


@contextmanager
def loading(what: object) -> Generator[None]:
    """Around code of the user that is run to be served."""
    try:
        yield
    except click.ClickException:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the user's file does
        raise click.ClickException(explain(error, what)) from None


@contextmanager
def running(what: object) -> Generator[None]:
    """Around agents of the user that run here. What none of their lines raised stays as it is."""
    try:
        yield
    except (click.ClickException, ThinkwellError):
        raise
    except Exception as error:
        if not any(_is_users(_file(frame)) for frame, _ in traceback.walk_tb(error.__traceback__)):
            raise
        failed = f"failed in {raised_in(error) or 'its code'}"
        raise click.ClickException(explain(error, what, failed)) from None


def explain(error: Exception, what: object, failed: str = "cannot be loaded") -> str:
    """An error of the user's program, as it is read in a terminal."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [(_file(frame), line) for frame, line in frames if _is_users(_file(frame))]
    if isinstance(error, SyntaxError):
        return f"{what} cannot be read.\n" + "".join(
            traceback.format_exception_only(type(error), error)
        ).rstrip("\n")
    if own and _is_told_by_us(error, frames[-1][0].f_code.co_filename):
        file, line = own[-1]
        return f"{_short(file)}:{line}: {error}"
    trace = "".join(traceback.format_exception(type(error), error, _from_user(error))).rstrip("\n")
    return f"{what} {failed}.\n{trace}"


async def model_problems(agents: Iterable[type]) -> dict[str, str]:
    """Why agents could not answer, by their names in URLs: no model, no key, no such provider.

    A class that chooses its model in `get_model` is not asked: that needs an agent that is awake.
    """
    problems: dict[str, str] = {}
    for each in agents:
        cls = cast("type[Think[Any]]", each)
        if not issubclass(each, Think) or cls.get_model is not Think[Any].get_model:
            continue
        try:
            if cls.model is None:
                cls.get_model(object.__new__(cls))  # says what to write
            for name in _names(cls.model):
                # In a thread: a provider's library may take a second to import.
                await close_model(await asyncio.to_thread(resolve_model, name))
        except ConfigurationError as error:
            problems[cls.agent_class] = str(error)
    return problems


def _names(model: Any) -> list[str]:
    """The models that are named; objects were made by the user and are there."""
    several = cast("list[Any]", model if isinstance(model, list | tuple) else [model])
    return [each for each in several if isinstance(each, str)]


def _is_told_by_us(error: Exception, raised_in: str) -> bool:
    on_purpose = isinstance(error, TypeError | ValueError) and raised_in.startswith(_OURS)
    return isinstance(error, ThinkwellError) or on_purpose


def _is_users(file: str) -> bool:
    installed = f"{os.sep}site-packages{os.sep}" in file
    return not (file.startswith((_OURS, _PYTHONS, "<")) or installed)


def _file(frame: object) -> str:
    return str(getattr(getattr(frame, "f_code", None), "co_filename", ""))


def _from_user(error: Exception) -> TracebackType | None:
    """The traceback without the frames that led to the user's file."""
    trace = error.__traceback__
    while trace is not None and not _is_users(_file(trace.tb_frame)):
        trace = trace.tb_next
    return trace if trace is not None else error.__traceback__


def _short(file: str) -> str:
    """A path as one would type it here."""
    near = os.path.relpath(file)
    return file if near.startswith("..") else near
