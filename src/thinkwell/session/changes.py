"""Changes of the message tree as data: for whoever may want one and never sees its transaction.

Code of others is not run inside a transaction (DESIGN §8.9): it could wait there for anything, and
everybody who writes would wait for it. Each of these is what the `Session` method of its name does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from thinkwell.core.errors import SessionError
from thinkwell.messages.message import UIMessage
from thinkwell.session.rows import AUTO, Parent
from thinkwell.session.tree import MessageTree
from thinkwell.store.base import Transaction


class SetActiveLeaf(msgspec.Struct, frozen=True):
    """Go on from this message; with `newest_below`, from the newest of it and all below it."""

    message_id: str | None
    newest_below: bool = False


class AddMessages(msgspec.Struct, frozen=True):
    """Write a chain of messages; known ids are left alone."""

    messages: Sequence[UIMessage]
    parent: Parent = AUTO


class DeleteMessages(msgspec.Struct, frozen=True):
    """Remove just these messages; their children move up."""

    ids: Sequence[str]


class DeleteBranch(msgspec.Struct, frozen=True):
    """Remove a message and everything below it."""

    message_id: str


Change: TypeAlias = SetActiveLeaf | AddMessages | DeleteMessages | DeleteBranch
"""One change of the message tree."""


async def carry_out(tx: Transaction, tree: MessageTree, change: Change) -> None:
    """Do it. Raises `SessionError` for a leaf or a parent that is not there."""
    match change:
        case SetActiveLeaf(message_id=str(message_id), newest_below=True):
            newest = await tree.history.newest_below(message_id, tx)
            if newest is None:
                raise SessionError(
                    f"No message has the id {message_id!r}, so it cannot be the active leaf."
                )
            await tree.pin(tx, newest.id)
        case SetActiveLeaf(message_id=message_id):
            await tree.pin(tx, message_id)
        case AddMessages(messages=messages, parent=parent):
            await tree.add(tx, messages, parent)
        case DeleteMessages(ids=ids):
            await tree.delete(tx, ids)
        case DeleteBranch(message_id=message_id):
            await tree.prune(tx, message_id)
