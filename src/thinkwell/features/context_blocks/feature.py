"""The seat of context blocks: their tools in each turn, and what a clear and the end of a turn do.

`agent/wiring.py` seats it with the first block of a session, so an agent without blocks never loads
this. Blocks and prompts themselves are in `session/blocks/`.
"""

from __future__ import annotations

from collections.abc import Mapping

from thinkwell.features.context_blocks.tools import ContextTools
from thinkwell.hooks.contexts import ChatResponse, HookContext
from thinkwell.hooks.feature import Feature
from thinkwell.session.blocks.unloading import unload_settled
from thinkwell.session.context import SessionMemory
from thinkwell.tools.tool import Tool


class ContextBlocks(Feature):
    """What context blocks bring into turns."""

    name = "context_blocks"
    namespace = False

    def tools(self, turn: HookContext) -> Mapping[str, Tool]:
        """Only those that some block of this turn needs."""
        principal = None if turn.principal is None else turn.principal.id
        return ContextTools(self._memory.blocks, self.kit.session).offered(principal)

    async def on_clear(self) -> None:
        """The cache is lost anyway: the next turn gets a new prompt. What blocks hold stays."""
        await self._memory.prompts.forget()

    async def on_chat_response(self, ctx: ChatResponse) -> None:
        """What the turn has unloaded goes from its stored reply, too.

        The hook is owed until it has run, so a crash in between loses nothing.
        """
        if unload_settled(ctx.message) is None:
            return
        session = self.kit.session
        stored = await session.get_message(ctx.message["id"])
        if stored is not None and (changed := unload_settled(stored)) is not None:
            await session.update_message(changed)

    @property
    def _memory(self) -> SessionMemory:
        memory = self.kit.session.memory
        if memory is None:  # the seat is taken with the first block
            raise RuntimeError("There are no context blocks.")
        return memory
