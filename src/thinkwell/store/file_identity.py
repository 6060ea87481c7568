"""Whether a path still leads to the file that was opened.

A deleted file lives on without a name for whoever has it open: writes succeed and are lost with the
process. So does one that was replaced, by a restored backup for example.
"""

from __future__ import annotations

import os
from pathlib import Path

from thinkwell.core.errors import StoreUnavailableError


class FileIdentity:
    """The file behind a path at the time this was made."""

    __slots__ = ("_known", "_path")

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path.absolute())
        self._known = _identity(self._path)

    def check(self) -> None:
        """Raise `StoreUnavailableError` if the path leads somewhere else now. Costs one `stat`."""
        try:
            if _identity(self._path) == self._known:
                return
            what = "replaced"
        except FileNotFoundError:
            what = "deleted"
        except OSError as error:
            raise StoreUnavailableError(
                f"the file {os.path.basename(self._path)} cannot be reached: {error.strerror}"
            ) from error
        raise StoreUnavailableError(
            f"the file {os.path.basename(self._path)} was {what} while it was in use; "
            "put it back, or restart"
        )


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
