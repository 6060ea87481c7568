"""One process per database file: an operating-system lock beside it.

Owned here: `<database>.lock`, which holds the pid of its owner for the error text. The lock
itself is the kernel's, so it ends with the process however that ends; the file stays, because
deleting it would let two processes lock two different files of the same name.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from thinkwell.core.errors import StoreLockedError

# Windows locks bytes, not files, and a locked byte cannot be read: keep it away from the pid.
_WINDOWS_LOCK_OFFSET = 1 << 20

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        os.lseek(handle, _WINDOWS_LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)

    _share = _lock

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _share(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)


_ours: set[tuple[int, int, int]] = set()
"""Lock files that this process holds: its pid (a fork gets a copy of the set), device and inode.

The pid in the file does not tell: every container has a process 1, and they may share a volume.
"""


def lock_holder(database: Path) -> int | None:
    """The process that has the database open, if any; 0 if nobody can say which."""
    path = database.with_name(database.name + ".lock")
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        _share(handle)
    except OSError:
        return int(os.read(handle, 32) or b"0")
    finally:
        os.close(handle)
    return None


class FileLock:
    """An exclusive lock for one database file, held until `release` or the end of the process."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._database = database
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise `StoreLockedError` that names the file and the holder."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(handle)
        except OSError as error:
            text = self._in_use(handle)
            os.close(handle)
            raise StoreLockedError(text) from error
        _ours.add(_identity(handle))
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        self._handle = handle

    def release(self) -> None:
        """Give the lock back. Idempotent."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        _ours.discard(_identity(handle))
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
        os.close(handle)

    def _in_use(self, handle: int) -> str:
        if _identity(handle) in _ours:
            return (
                f"{self._database} is open in this program already (lock file {self.path}). Give "
                "all agents to one `App(agents=[...])`, stop the first app or agent before this "
                "one starts (`async with` does), or give this one a store of its own: "
                'store="sqlite:///other.db", or "sqlite://:memory:" in tests.'
            )
        return (
            f"{self._database} is in use by another process ({self._holder(handle)}; lock file "
            f"{self.path}). Stop that process, or give this one a store of its own, for example "
            '--store "sqlite:///other.db".'
        )

    @staticmethod
    def _holder(handle: int) -> str:
        try:
            text = os.read(handle, 32).decode(errors="replace").strip()
        except OSError:
            text = ""
        return f"pid {text}" if text.isdecimal() else "pid unknown"


def _identity(handle: int) -> tuple[int, int, int]:
    file = os.fstat(handle)
    return os.getpid(), file.st_dev, file.st_ino
