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
