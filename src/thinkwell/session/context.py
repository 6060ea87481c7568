"""The context blocks of a session, as its users see them (spec/03 §3-5).

The builder's methods are for `configure_session`; the others work at any time. A session without
blocks knows nothing of them: the code behind this file is loaded with the first block.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from thinkwell.core.errors import SessionError

if TYPE_CHECKING:
    from thinkwell.messages.message import UIMessage
    from thinkwell.session.blocks.blocks import Blocks
    from thinkwell.session.blocks.ports import Ports
    from thinkwell.session.blocks.prompts import FrozenPrompts
    from thinkwell.session.blocks.records import BlockVersion, ContextBlock
    from thinkwell.store.base import Transaction


class BlockSettings(TypedDict, total=False):
    """What can be said about a block; see `Session.with_context`."""

    description: str | None
    max_tokens: int | None
    placement: Literal["prompt", "tail"]
    scope: Literal["session", "agent", "principal", "class"]
    kind: Literal["plain", "loadable", "searchable"]
    writable: bool | None


class SessionMemory:
    """The blocks of one session and the prompts made of them. Made with the first block."""

    def __init__(self, blocks: Blocks, prompts: FrozenPrompts) -> None:
        self.blocks = blocks
        self.prompts = prompts


class ContextMethods:
    """What a session can do with context blocks."""

    memory: SessionMemory | None = None
    """None as long as there are no blocks."""

    def _block_ports(self) -> Ports:
        raise NotImplementedError

    def _begun_to_remember(self) -> None:
        """There are blocks from now on."""

    # For `configure_session`

    def with_context(
        self, label: str, provider: Any = None, **settings: Unpack[BlockSettings]
    ) -> Self:
        """Give the session a block.

        `provider` is a string, a function without parameters, a `Path` to a file or a folder, or an
        object with `get()`; see `ContextProvider`. Without one the block is stored here, and the
        model may write it. Raises `DuplicateBlockError`.
        """
        from thinkwell.session.blocks.specs import read_options

        options = read_options(label, settings)
        self._remembering().blocks.define(label, provider, options)
        return self

    def with_cached_prompt(self, provider: Any = None) -> Self:
        """Keep the system prompt over restarts, byte for byte, until it is refreshed.

        It is made anew as well when blocks are set up differently. `provider` keeps it elsewhere:
        an object with `get()` and `set(text)`.
        """
        prompts = self._remembering().prompts
        if provider is not None and not (
            callable(getattr(provider, "get", None)) and callable(getattr(provider, "set", None))
        ):
            raise TypeError(
                f"with_cached_prompt() was given {provider!r:.80}. Give an object with get() and "
                "set(text), or nothing: then the prompt is kept in the database."
            )
        prompts.cached, prompts.provider = True, provider
        return self

    # At run time

    async def add_context(
        self, label: str, provider: Any = None, **settings: Unpack[BlockSettings]
    ) -> ContextBlock | None:
        """One more block. Its tools are there from the next turn on, its text after a refresh.

        What it holds; None for a block that belongs to whoever asks for a turn.
        """
        self.with_context(label, provider, **settings)
        if settings.get("scope") == "principal":
            return None
        return await self.get_context_block(label)

    async def remove_context(
        self, label: str, *, purge: bool = False, principal: str | None = None
    ) -> bool:
        """Take a block away; False if there is none. The prompt shows it until a refresh.

        What is stored stays, and is there again when the block is. `purge=True` deletes it, with
        its history.
        """
        if self.memory is None:
            return False
        blocks = self.memory.blocks
        if purge and (spec := blocks.find(label)) is not None and spec.stored:
            await blocks.purge(spec, principal)
        return blocks.remove(label)

    # What they hold

    async def get_context_block(
        self, label: str, *, principal: str | None = None
    ) -> ContextBlock | None:
        """A block as it is now, whatever the prompt shows. None if there is none.

        `principal` is the id of the person, for a block of theirs.
        """
        spec = None if self.memory is None else self.memory.blocks.find(label)
        if self.memory is None or spec is None:
            return None
        return await self.memory.blocks.read(spec, principal)

    async def get_context_blocks(self, *, principal: str | None = None) -> list[ContextBlock]:
        """The blocks of a turn that this person asks for, in their order."""
        if self.memory is None:
            return []
        blocks = self.memory.blocks
        return [await blocks.read(spec, principal) for spec in blocks.specs(principal)]

    async def context_history(
        self, label: str, *, key: str = "", principal: str | None = None, limit: int = 50
    ) -> list[BlockVersion]:
        """Who changed a stored block, or one of its entries, and how: the newest first."""
        return await self._blocks.history(label, key=key, principal=principal, limit=limit)

    # Every change

    async def replace_context_block(
        self,
        label: str,
        content: str,
        *,
        expected_version: int | None = None,
        principal: str | None = None,
    ) -> ContextBlock:
        """Give a block another text. It is durable when this returns; the prompt stays.

        With `expected_version`, only if that is still the one that counts: else `ConflictError`.
        Raises `BlockNotFoundError`, `BlockReadonlyError`, `BlockLimitError`.
        """
        return await self._change(
            label, "replace", content, principal=principal, expected=expected_version
        )

    async def append_context_block(
        self, label: str, content: str, *, principal: str | None = None
    ) -> ContextBlock:
        """Add lines to a block."""
        return await self._change(label, "append", content, principal=principal)

    async def set_context_entry(
        self,
        label: str,
        key: str,
        content: str,
        *,
        description: str | None = None,
        principal: str | None = None,
    ) -> None:
        """Write an entry of a loadable or searchable block."""
        await self._change(
            label, "replace", content, key=key, description=description, principal=principal
        )

    async def delete_context_entry(
        self, label: str, key: str, *, principal: str | None = None
    ) -> None:
        """Delete an entry of a stored block. `undo_context` brings it back."""
        await self._change(label, "delete", "", key=key, principal=principal)

    async def revert_context(
        self, label: str, version: int, *, key: str = "", principal: str | None = None
    ) -> None:
        """Bring a former version back, as a new one."""
        from thinkwell.session.blocks.blocks import by_code

        await self._blocks.restore(label, version, key=key, author=by_code(principal))

    async def undo_context(
        self, label: str, *, key: str = "", principal: str | None = None
    ) -> None:
        """Take the last change back; again, the one before it."""
        from thinkwell.session.blocks.blocks import by_code

        await self._blocks.restore(label, None, key=key, author=by_code(principal))

    # Documents in the conversation

    async def get_loaded_skill_keys(self) -> set[str]:
        """What `load_context` has put into the conversation and is still there: `label:key`."""
        if self.memory is None or not self.memory.blocks.loads:
            return set()
        from thinkwell.session.blocks.unloading import listed, loaded_in

        return set(listed(loaded_in(await self._replies())))

    async def unload_skill(self, label: str, key: str) -> bool:
        """Take a document out of the stored conversation. False if it is not in it.

        A mark stands where its text was; the turn that runs still has it.
        """
        from thinkwell.session.blocks.unloading import unload_from

        changed = [
            unloaded
            for message in await self._replies()
            if (unloaded := unload_from(message, (label, key))) is not None
        ]
        for message in changed:
            await self._blocks.join(partial(self._replace_message, message))
        return bool(changed)

    async def _replies(self) -> list[UIMessage]:
        """The replies of the active path."""
        raise NotImplementedError

    async def _replace_message(self, message: UIMessage, tx: Transaction) -> None:
        raise NotImplementedError

    # The prompt

    async def freeze_system_prompt(self, *, principal: str | None = None) -> str:
        """The system prompt of the next turn. It stays the same until it is refreshed."""
        return "" if self.memory is None else await self.memory.prompts.freeze(principal)

    async def refresh_system_prompt(self, *, principal: str | None = None) -> str:
        """Read all blocks and make the system prompt anew, from the next turn on."""
        return "" if self.memory is None else await self.memory.prompts.refresh(principal)

    async def _change(
        self, label: str, action: Any, content: str, *, principal: str | None, **how: Any
    ) -> ContextBlock:
        from thinkwell.session.blocks.blocks import by_code

        if not isinstance(content, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
            raise TypeError(f'Block "{label}" holds text; {content!r:.80} is none.')
        blocks = self._blocks
        return await blocks.write(
            blocks.spec(label), action, content, author=by_code(principal), **how
        )

    @property
    def _blocks(self) -> Blocks:
        if self.memory is None:
            raise SessionError(
                "This session has no context blocks. Add one in configure_session(): "
                '`return session.with_context("memory")`.'
            )
        return self.memory.blocks

    def _remembering(self) -> SessionMemory:
        if self.memory is None:
            from thinkwell.session.blocks.blocks import Blocks
            from thinkwell.session.blocks.prompts import FrozenPrompts

            ports = self._block_ports()
            blocks = Blocks(ports)
            self.memory = SessionMemory(blocks, FrozenPrompts(ports, blocks))
            self._begun_to_remember()
        return self.memory
