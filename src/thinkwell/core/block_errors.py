"""What goes wrong with context blocks; the tree is at the top of `core/errors.py`."""

from __future__ import annotations

from collections.abc import Sequence

from thinkwell.core.errors import SessionError


class DuplicateBlockError(SessionError):
    """Two context blocks with one label."""

    def __init__(self, label: str) -> None:
        super().__init__(f'Block "{label}" already exists. Give this one another label.')
        self.label = label


class BlockNotFoundError(SessionError):
    """No context block has that label."""

    def __init__(self, label: str, known: Sequence[str] = ()) -> None:
        there = f" There are: {', '.join(known)}." if known else ""
        super().__init__(f'Block "{label}" not found.{there}')
        self.label = label


class BlockReadonlyError(SessionError):
    """A context block that cannot be written, or not in this way."""

    def __init__(self, label: str, why: str = "") -> None:
        super().__init__(f'Block "{label}" is readonly{why}')
        self.label = label


class BlockLimitError(SessionError):
    """Text that is longer than its context block may be. Nothing was written."""

    def __init__(self, label: str, tokens: int, limit: int, unit: str = "max_tokens") -> None:
        super().__init__(f'Block "{label}" exceeds {unit}: {tokens} > {limit}')
        self.label = label


class ConflictError(SessionError):
    """A context block was changed by somebody else meanwhile. Nothing was written."""

    def __init__(self, label: str, expected: int, found: int) -> None:
        super().__init__(
            f'Block "{label}" was changed meanwhile: it is version {found}, not {expected}. '
            "Nothing was written. Read it again, then write what should stay."
        )
        self.label = label
        self.expected = expected
        self.found = found
