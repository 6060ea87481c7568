"""What a client may do: the actions, what they are about, and who may by default.

Pure. `Agent.authorize` gives this answer and may be overridden; `turn/ask/authority.py` asks it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core.principal import Principal

Action: TypeAlias = Literal[
    "send", "edit", "answer", "approve", "cancel", "clear", "branch", "state", "call"
]
"""What a client can ask for beside looking."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What an action is about. Fields that do not belong to the action are None."""

    read_only: bool = False
    """Whether the client is read-only, as a read-only hook decided."""
    asker: Principal | None = None
    """Whose turn it is about (answer, approve, cancel); None if nobody was known then."""
    request_id: str | None = None
    """The turn (send, edit, cancel), the one whose call waits (answer, approve); None if it has no
    id yet (`POST run`), or if there is nothing to stop.
    """
    message_id: str | None = None
    """The message: the client's newest (send, edit), the one that waits (answer, approve), the
    branch's (branch).
    """
    tool_call_id: str | None = None
    tool_name: str | None = None
    input: Any = None
    """The stored arguments of the tool (answer, approve), the new state, the arguments of a call.
    """
    method: str | None = None
    """What is called (call, branch)."""
    looks: bool = False
    """The method is marked `@rpc(read_only=True)`."""
    named: bool | None = None
    """Whether the tool's `approvers` name whoever asks; None if the tool names nobody."""


Approvers: TypeAlias = (
    str | Collection[str] | Callable[[Principal | None, Subject], bool | Awaitable[bool]]
)
"""Who may approve or answer a tool's calls: a principal id, several, or a function that decides."""


def may_by_default(action: Action, principal: Principal | None, subject: Subject) -> bool:
    """Read-only clients only read; a call is answered by its asker, or by whom the tool names.

    A turn without a principal is anybody's: whoever may send may answer it.
    """
    if subject.read_only:
        return action == "call" and subject.looks
    if action not in ("answer", "approve"):
        return True
    if subject.named is not None:
        return subject.named
    if subject.asker is None:
        return True
    return principal is not None and principal.id == subject.asker.id
