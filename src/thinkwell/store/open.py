"""A store from its URL, the one place that knows which drivers exist."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from thinkwell.core.errors import ConfigurationError
from thinkwell.store.base import Store
from thinkwell.store.sqlite import MEMORY, Durability, SqliteStore

_FORMS = (
    'Write "sqlite:///folder/file.db" for a path relative to the working directory, '
    '"sqlite:////srv/file.db" for an absolute one, or "sqlite://:memory:" to keep nothing.'
)


def store_from_url(url: str, *, durability: Durability = "process") -> Store:
    """The store a URL names, not opened yet. Raises `ConfigurationError` with the right forms."""
    return SqliteStore(database_file(url) or MEMORY, durability=durability)


def file_sizes(url: str) -> dict[str, int]:
    """Bytes of the files of the store a URL names: the database, and the log beside it."""
    path = database_file(url)
    if path is None:
        return {}
    log = path.with_name(f"{path.name}-wal")
    return {"database": _size(path), "log": _size(log)}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # there is no log while nothing was written since the last checkpoint
        return 0


def database_file(url: str) -> Path | None:
    """The file of the store a URL names; None if it lives in memory."""
    if not isinstance(cast("object", url), str) or "://" not in url:
        raise ConfigurationError(
            f'{str(url)!r} has no scheme. Did you mean "sqlite:///{url}"? {_FORMS}'
        )
    scheme, _, rest = url.partition("://")
    if scheme in ("postgresql", "postgres"):
        raise ConfigurationError(
            f"The store {scheme}:// is not built yet; use SQLite for now. {_FORMS}"
        )
    if scheme != "sqlite":
        raise ConfigurationError(f"{url!r} is not a store Thinkwell knows. {_FORMS}")
    if rest in (MEMORY, f"/{MEMORY}"):
        return None
    path = rest.removeprefix("/")
    if path == rest or not path or path.endswith("/"):
        raise ConfigurationError(f"{url!r} does not name a database file. {_FORMS}")
    return Path(path)
