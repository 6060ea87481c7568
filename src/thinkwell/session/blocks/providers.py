"""Where the text of a block comes from: a string, a function, a file, a folder or an object.

Everything is made a `BlockSource`, the one shape that blocks know. Methods tell the kind: what can
`search` is searchable, what can `load` is loadable, everything else is plain; what has `set` is
writable (spec/03 §4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from thinkwell.core.user_code import call_user

Kind: TypeAlias = Literal["plain", "loadable", "searchable"]
KINDS: Final = ("plain", "loadable", "searchable")
Text: TypeAlias = str | Awaitable[str | None] | None

LONGEST_FILE = 1_000_000
"""Bytes of a file that may become context."""
MOST_FILES = 1_000
"""Files of a folder that are listed."""


@runtime_checkable
class ContextProvider(Protocol):
    """Gives the text of a read-only block. With `set(content)` beside it, the block is writable.

    With `load(key)` it is loadable, with `search(query)` searchable; `set` then takes a key first.
    Every method may be async. `init(label)`, if there is one, is called before each first `get`.
    """

    def get(self) -> Text:
        """The text, or None for nothing."""
        ...


class BlockSource(Protocol):
    """What a block asks for its text."""

    @property
    def kind(self) -> Kind:
        """What can be done with it."""
        ...

    @property
    def writable(self) -> bool:
        """Whether there is a `set`."""
        ...

    @property
    def fixed(self) -> str | None:
        """The text, if it only changes with the app's own files: it counts in the fingerprint."""
        ...

    async def get(self) -> str | None:
        """The text now."""
        ...

    async def set(self, content: str, key: str, description: str | None) -> None:
        """Replace the text, or one entry."""
        ...

    async def load(self, key: str) -> str | None:
        """The text of one entry."""
        ...

    async def search(self, query: str) -> str | None:
        """What is found."""
        ...


def read_source(provider: Any, label: str) -> BlockSource:
    """What a user gave as provider. Raises `TypeError` for what is none."""
    if isinstance(provider, str):
        return _Fixed(provider)
    if isinstance(provider, Path):
        return _Folder(provider) if provider.is_dir() else _file(provider, label)
    if isinstance(provider, Mapping):
        raise TypeError(
            f"The provider of the context block {label!r} is a mapping, whose get() means "
            "something else. Give a string, a function, a Path, or an object with get()."
        )
    if callable(getattr(provider, "get", None)) and not isinstance(provider, type):
        return _Object(provider, label)
    if callable(provider) and not isinstance(provider, type):
        return _Called(provider, label)
    raise TypeError(
        f"The provider of the context block {label!r} is {provider!r:.80}. Give a string, a "
        "function without parameters, a Path, or an object with get()."
    )


class _ReadOnly:
    """What most sources cannot do."""

    kind: Kind = "plain"
    writable: bool = False

    @property
    def fixed(self) -> str | None:
        return None

    async def set(self, content: str, key: str, description: str | None) -> None:
        raise NotImplementedError  # blocks ask `writable` first

    async def load(self, key: str) -> str | None:
        raise NotImplementedError

    async def search(self, query: str) -> str | None:
        raise NotImplementedError


class _Fixed(_ReadOnly):
    """A string."""

    def __init__(self, text: str) -> None:
        self._content = text

    @property
    def fixed(self) -> str | None:
        return self._content

    async def get(self) -> str | None:
        return self._content


def _file(path: Path, label: str) -> BlockSource:
    if not path.is_file():
        raise FileNotFoundError(
            f"The context block {label!r} is to come from {path}: no such file."
        )
    return _File(path)


class _File(_ReadOnly):
    """A text file, read whenever the prompt is made."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def fixed(self) -> str | None:
        return _read_text(self._path)

    async def get(self) -> str | None:
        return _read_text(self._path)


class _Folder(_ReadOnly):
    """Text files that are loaded by their path below the folder."""

    kind: Kind = "loadable"

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    async def get(self) -> str | None:
        return await asyncio.to_thread(self._list)

    def _list(self) -> str | None:
        lines = [_listed(key, _first_line(path)) for key, path in self._files()]
        return "\n".join(lines) or None

    async def load(self, key: str) -> str | None:
        # Resolved, so that neither `..` nor a link leads out of the folder.
        try:
            path = (self._root / key).resolve()
            inside = path.is_relative_to(self._root) and path.is_file()
        except (OSError, ValueError):  # a name that no file can have
            return None
        return _read_text(path) if inside and not _is_hidden(path, self._root) else None

    def _files(self) -> Sequence[tuple[str, Path]]:
        found = sorted(
            path
            for path in self._root.rglob("*")
            if path.resolve().is_relative_to(self._root)
            and path.is_file()
            and not _is_hidden(path, self._root)
        )
        return [(path.relative_to(self._root).as_posix(), path) for path in found[:MOST_FILES]]


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LONGEST_FILE).decode(errors="replace")


def _first_line(path: Path) -> str | None:
    with path.open("rb") as file:
        line = file.readline(200).decode(errors="replace").strip()
    return line.lstrip("# ") or None


def _listed(key: str, description: str | None) -> str:
    return f"- {key}: {description}" if description else f"- {key}"


class _Called(_ReadOnly):
    """A function without parameters."""

    def __init__(self, function: Callable[[], Any], label: str) -> None:
        self._function = function
        self._what = f"the provider of the context block {label!r}"

    async def get(self) -> str | None:
        return _text(await call_user(self._what, self._function), self._what)


class _Object(_ReadOnly):
    """An object with methods."""

    def __init__(self, provider: Any, label: str) -> None:
        self._provider = provider
        self._label = label
        self._what = f"the provider of the context block {label!r}"
        self.kind: Kind = "plain"
        self.writable = bool(callable(getattr(provider, "set", None)))
        if callable(getattr(provider, "search", None)):
            self.kind = "searchable"
        elif callable(getattr(provider, "load", None)):
            self.kind = "loadable"

    async def get(self) -> str | None:
        if callable(init := getattr(self._provider, "init", None)):
            await call_user(self._what, init, self._label)
        return await self._ask("get")

    async def set(self, content: str, key: str, description: str | None) -> None:
        given: tuple[Any, ...] = (content,)
        if self.kind == "loadable":
            given = (key, content, description)
        elif self.kind == "searchable":
            given = (key, content)
        await call_user(self._what, self._provider.set, *given)

    async def load(self, key: str) -> str | None:
        return await self._ask("load", key)

    async def search(self, query: str) -> str | None:
        return await self._ask("search", query)

    async def _ask(self, method: str, *given: str) -> str | None:
        value = await call_user(self._what, getattr(self._provider, method), *given)
        return _text(value, f"{method}() of {self._what}")


def _text(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{what} returned {value!r:.80}. Return a string, or None for nothing.")
