"""The context blocks of one session: which there are, what they hold, every change (spec/03 §4).

A block of a provider is read and written there. One without a provider is stored here, with
versions: who changed it, in which turn, and what it was before. Whose rows they are depends on its
scope; a person's are reached only with that person's id, so a turn of somebody else finds nothing.

Writes go through `join`: inside a `tx` tool they are committed together with its result, otherwise
at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from thinkwell.core.block_errors import (
    BlockNotFoundError,
    BlockReadonlyError,
    DuplicateBlockError,
)
from thinkwell.core.context_events import ContextChanged
from thinkwell.core.errors import SessionError
from thinkwell.core.user_code import log_fields
from thinkwell.session.blocks import rows
from thinkwell.session.blocks.finding import find_entries, found_text
from thinkwell.session.blocks.ports import Ports
from thinkwell.session.blocks.records import (
    EVERYWHERE,
    Author,
    BlockPlace,
    BlockSpec,
    BlockVersion,
    ContextBlock,
    Placement,
)
from thinkwell.session.blocks.rows import Action, BlockWrite, Hand
from thinkwell.session.blocks.specs import BlockOptions, as_block, read_spec
from thinkwell.session.blocks.writes import appended, check_content, check_key
from thinkwell.store.base import Transaction


class Blocks:
    """The blocks of one session."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.join = ports.join
        self._specs: dict[str, BlockSpec] = {}
        self.shown: dict[tuple[str, str], int] = {}
        """Which version of a block the model has last seen, by whose it is and label."""

    # Which there are

    def define(self, label: str, provider: Any, options: BlockOptions) -> None:
        """One more block."""
        if label in self._specs:
            raise DuplicateBlockError(label)
        self._specs[label] = read_spec(label, provider, options)

    def remove(self, label: str) -> bool:
        """One block less; what is stored of it stays."""
        return self._specs.pop(label, None) is not None

    def specs(self, principal: str | None, placement: Placement | None = None) -> list[BlockSpec]:
        """The blocks that a turn of this person has, in their order."""
        return [
            spec
            for spec in self._specs.values()
            if (principal is not None or spec.scope != "principal")
            and placement in (None, spec.placement)
        ]

    @property
    def loads(self) -> bool:
        """Whether any block has documents to load."""
        return any(spec.kind == "loadable" for spec in self._specs.values())

    def find(self, label: str) -> BlockSpec | None:
        """A block by its label."""
        return self._specs.get(label)

    def spec(self, label: str) -> BlockSpec:
        """A block by its label. Raises `BlockNotFoundError`."""
        spec = self._specs.get(label)
        if spec is None:
            raise BlockNotFoundError(label, tuple(self._specs))
        return spec

    def place(self, spec: BlockSpec, principal: str | None, key: str = "") -> BlockPlace:
        """Where its rows are. Raises `SessionError` for a person's block without a person."""
        owner, session = self._ports.agent_id, self._ports.session_id
        if spec.scope != "session":
            session = EVERYWHERE
        if spec.scope == "class":
            owner = f"/class/{owner.partition('/')[0]}"
        elif spec.scope == "principal":
            if principal is None:
                raise SessionError(
                    f'Block "{spec.label}" belongs to a person. Say whose: principal="their id".'
                )
            owner = f"/principal/{principal}"
        return BlockPlace(agent=owner, session=session, label=spec.label, key=key)

    # What they hold

    async def read(self, spec: BlockSpec, principal: str | None) -> ContextBlock:
        """A block as it is now."""
        if spec.source is not None:
            return as_block(spec, await spec.source.get() or "", 0)
        place = self.place(spec, principal)
        if spec.kind == "plain":
            found = await rows.current(self._ports.store, place)
            content = "" if found is None else found.content or ""
            return as_block(spec, content, 0 if found is None else found.version)
        if spec.kind == "searchable":
            count = await rows.count_entries(self._ports.store, place)
            return as_block(
                spec, f"{count} {'entry' if count == 1 else 'entries'} indexed." if count else "", 0
            )
        listed = await rows.entries(self._ports.store, place)
        lines = [f"- {e.key}: {e.description}" if e.description else f"- {e.key}" for e in listed]
        return as_block(spec, "\n".join(lines), 0)

    async def load(self, spec: BlockSpec, key: str, principal: str | None) -> str | None:
        """The text of an entry; None if there is none."""
        if spec.source is not None:
            return await spec.source.load(key)
        found = await rows.current(self._ports.store, self.place(spec, principal, check_key(key)))
        return None if found is None else found.content

    async def search(self, spec: BlockSpec, query: str, principal: str | None) -> str | None:
        """What its entries say about something."""
        if spec.source is not None:
            return await spec.source.search(query)
        entries = await rows.entries(self._ports.store, self.place(spec, principal))
        return await asyncio.to_thread(lambda: found_text(find_entries(entries, query)))

    async def history(
        self, label: str, *, key: str, principal: str | None, limit: int
    ) -> list[BlockVersion]:
        """The versions that are kept, the newest first."""
        place = self.place(self._stored(label), principal, key)
        return await rows.history(self._ports.store, place, limit)

    async def look(self, spec: BlockSpec, principal: str | None) -> tuple[int, BlockVersion | None]:
        """The version of a shared block that counts, and itself if the model has not read it.

        It has not if another agent wrote it since. From now on it counts as read: whoever asks
        shows it.
        """
        place = self.place(spec, principal)
        found = await rows.current(self._ports.store, place)
        if found is None:
            return 0, None
        seen = self.shown.get((place.agent, spec.label))
        self.shown[place.agent, spec.label] = found.version
        known = found.agent == self._ports.agent_id or seen == found.version
        return found.version, None if known else found

    # Every change

    async def write(
        self,
        spec: BlockSpec,
        action: Action,
        content: str,
        *,
        author: Author,
        key: str = "",
        description: str | None = None,
        expected: int | None = None,
    ) -> ContextBlock:
        """Change a block or an entry. What it is then, as far as it is known before the commit."""
        _check_way(spec, key)
        if spec.source is not None:
            if expected is not None:
                raise SessionError(
                    f'Block "{spec.label}" has a provider, which counts no versions.'
                )
            return await self._hand_over(spec, action, content, key=key, description=description)
        write = BlockWrite(
            place=self.place(spec, author.principal, key),
            action=action,
            content=content,
            description=description,
            max_tokens=spec.max_tokens,
            expected=expected,
        )
        # Decided once more inside the transaction; here for whoever waits for no commit.
        found = await rows.current(self._ports.store, write.place)
        text = rows.decide(write, found) or ""
        made = await self._commit(
            spec, write.place, author, lambda tx, hand: rows.carry_out(tx, write, hand)
        )
        if made is not None:
            return as_block(spec, made.content or "", made.version)
        return as_block(spec, text, 1 if found is None else found.version + 1)

    async def restore(
        self, label: str, wanted: int | None, *, key: str, author: Author
    ) -> BlockVersion | None:
        """Bring a version back; None: the one before the last change."""
        spec = self._stored(label)
        place = self.place(spec, author.principal, key)
        return await self._commit(
            spec, place, author, lambda tx, hand: rows.bring_back(tx, place, wanted, hand)
        )

    async def purge(self, spec: BlockSpec, principal: str | None) -> None:
        """Delete what is stored of a block, with its history."""
        place = self.place(spec, principal).params
        await self._ports.join(lambda tx: tx.execute("purge_block", place))

    def _stored(self, label: str) -> BlockSpec:
        spec = self.spec(label)
        if not spec.stored:
            raise SessionError(f'Block "{label}" has a provider: there are no versions of it here.')
        return spec

    async def _hand_over(
        self, spec: BlockSpec, action: Action, content: str, *, key: str, description: str | None
    ) -> ContextBlock:
        """A provider's block is written there, and only there."""
        source = spec.source
        if source is None or not source.writable:
            raise BlockReadonlyError(spec.label)
        if action == "delete":
            raise SessionError(
                f'Block "{spec.label}" has a provider, which deletes its entries itself.'
            )
        if action == "append":
            before = await source.load(key) if key else await source.get()
            content = appended(before or "", content)
        content = check_content(spec.label, content, spec.max_tokens)
        await source.set(content, key, description)
        return as_block(spec, content, 0)

    async def _commit(
        self,
        spec: BlockSpec,
        place: BlockPlace,
        author: Author,
        work: Callable[[Transaction, Hand], Awaitable[BlockVersion]],
    ) -> BlockVersion | None:
        """What was written; None if it will be, with what the current code commits."""
        ports, made = self._ports, list[BlockVersion]()
        hand = Hand(agent_id=ports.agent_id, author=_named(author), now=ports.clock.now())

        async def write(tx: Transaction) -> None:
            made[:] = [await work(tx, hand)]  # again, if the commit failed

        await ports.join(write, lambda: self._tell(spec, place, made[0]))
        return made[0] if made else None

    def _tell(self, spec: BlockSpec, place: BlockPlace, made: BlockVersion) -> None:
        """It is committed."""
        if not made.key:
            self.shown[place.agent, spec.label] = made.version
        self._ports.bus.emit(
            ContextChanged,
            agent=made.agent,
            label=made.label,
            key=made.key,
            version=made.version,
            scope=spec.scope,
            source=made.source,
            principal=made.principal,
            turn=made.turn,
            tool_call_id=made.tool_call_id,
            restored=made.restored,
        )


def by_code(principal: str | None) -> Author:
    """The author's own code, in whatever turn it runs."""
    return Author(principal=principal, turn=log_fields.get().get("turn"))


def _named(author: Author) -> Author:
    """With who asked for the turn that runs, if nobody else is named: an erasure finds it by them.

    Only in the row. Whose block it is, code has to say.
    """
    if author.principal is not None:
        return author
    return msgspec.structs.replace(author, principal=log_fields.get().get("principal"))


def _check_way(spec: BlockSpec, key: str) -> None:
    if spec.kind == "plain" and key:
        raise SessionError(f'Block "{spec.label}" has no entries. Write it without a key.')
    if spec.kind != "plain" and not key:
        raise BlockReadonlyError(spec.label, ": it has entries. Write one of them, by its key.")
