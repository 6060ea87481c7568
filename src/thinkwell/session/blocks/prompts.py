"""The system prompt that is made of context blocks, and kept (spec/03 §5).

A provider's cache holds the beginning of a request as long as its bytes stay the same. So the
prompt is made once and kept: a block that changes is durable at once, but the prompt shows it after
a refresh. What must be current stands in a message behind the conversation, made anew for each
turn.

Prompts are kept for each person apart if a block of theirs is in it: nobody is shown another's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from thinkwell.core import json
from thinkwell.core.context_events import ContextPromptMade
from thinkwell.core.user_code import call_user
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.session.blocks.blocks import Blocks
from thinkwell.session.blocks.ports import Ports
from thinkwell.session.blocks.records import BlockSpec, ContextBlock
from thinkwell.session.blocks.render import fingerprint, render, render_tail

MOST_KEPT = 200
"""Prompts in memory: an agent that many people talk to has one for each of them."""
Reason: TypeAlias = Literal["first", "changed", "asked"]
_PROVIDER = "the provider of the prompt"


class FrozenPrompts:
    """The prompts of one session."""

    def __init__(self, ports: Ports, blocks: Blocks) -> None:
        self._ports = ports
        self._blocks = blocks
        self._kept: dict[str, str] = {}
        self._making = asyncio.Lock()
        self.cached = False
        """Whether prompts outlive the process."""
        self.provider: Any = None
        """Where the one that is nobody's is kept instead of our own table. It holds one text, so
        those of people stay here."""

    async def freeze(self, principal: str | None) -> str:
        """The prompt for a turn of this person: the one that was made before, if there is one."""
        specs = self._blocks.specs(principal, "prompt")
        if not specs:
            return ""
        who = _who(specs, principal)
        if who not in self._kept:
            async with self._making:  # whoever asks meanwhile gets the same text
                if who not in self._kept:
                    self._keep(who, await self._find_or_make(who, specs, principal))
        return self._kept[who]

    async def refresh(self, principal: str | None) -> str:
        """Read every provider and make the prompt anew; those of others when they come."""
        async with self._making:
            await self.forget()
            specs = self._blocks.specs(principal, "prompt")
            if not specs:
                return ""
            who = _who(specs, principal)
            self._keep(who, await self._make(who, specs, principal, "asked"))
            return self._kept[who]

    async def forget(self) -> None:
        """The next turns make new ones."""
        self._kept.clear()
        if self.cached:
            place = self._place("")
            await self._ports.join(lambda tx: tx.execute("forget_prompts", place))

    async def tail(self, principal: str | None) -> tuple[UserMessage, ...]:
        """What stands behind the conversation in this turn, and is never stored."""
        specs = self._blocks.specs(principal, "tail")
        if not specs:
            return ()
        text = render_tail(await self._read(specs, principal))
        return (UserMessage((TextContent(text),)),) if text else ()

    def _keep(self, who: str, prompt: str) -> None:
        self._kept[who] = prompt
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    async def _find_or_make(
        self, who: str, specs: Sequence[BlockSpec], principal: str | None
    ) -> str:
        """The prompt of an earlier life, unless the author has set the blocks up differently."""
        reason: Reason = "first"
        if self.cached:
            row = await self._ports.store.fetch_one("read_prompt", self._place(who))
            if row is not None and row["fingerprint"] == fingerprint(specs):
                prompt: str | None = row["prompt"]
                if self._is_elsewhere(who):
                    prompt = await call_user(_PROVIDER, self.provider.get)
                if prompt is not None:
                    self._recall(row["shown"])
                    return prompt
            elif row is not None:
                reason = "changed"
        return await self._make(who, specs, principal, reason)

    def _recall(self, shown: str) -> None:
        for owner, label, version in json.loads(shown):
            self._blocks.shown.setdefault((owner, label), version)

    async def _make(
        self, who: str, specs: Sequence[BlockSpec], principal: str | None, reason: Reason
    ) -> str:
        blocks = await self._read(specs, principal)
        prompt, mark = render(blocks), fingerprint(specs)
        if self.cached:
            if self._is_elsewhere(who):
                await call_user(_PROVIDER, self.provider.set, prompt)
            row = {
                **self._place(who),
                "fingerprint": mark,
                "shown": json.dumps(self._shown(specs, blocks, principal)),
                "made_at": self._ports.clock.now(),
                "prompt": None if self._is_elsewhere(who) else prompt,
            }
            await self._ports.join(lambda tx: tx.execute("keep_prompt", row))
        self._ports.bus.emit(
            ContextPromptMade,
            agent=self._ports.agent_id,
            reason=reason,
            fingerprint=mark,
            principal=who or None,
            tokens=sum(block.tokens for block in blocks),
        )
        return prompt

    def _shown(
        self, specs: Sequence[BlockSpec], blocks: Sequence[ContextBlock], principal: str | None
    ) -> list[Any]:
        return [
            [self._blocks.place(spec, principal).agent, spec.label, block.version]
            for spec, block in zip(specs, blocks, strict=True)
            if spec.shared
        ]

    async def _read(self, specs: Sequence[BlockSpec], principal: str | None) -> list[ContextBlock]:
        blocks = [await self._blocks.read(spec, principal) for spec in specs]
        for spec, block in zip(specs, blocks, strict=True):
            if spec.stored and spec.kind == "plain":
                place = self._blocks.place(spec, principal)
                self._blocks.shown[place.agent, spec.label] = block.version
        return blocks

    def _is_elsewhere(self, who: str) -> bool:
        return self.provider is not None and not who

    def _place(self, who: str) -> dict[str, str]:
        ports = self._ports
        return {"agent": ports.agent_id, "session": ports.session_id, "principal": who}


def _who(specs: Sequence[BlockSpec], principal: str | None) -> str:
    """Whose prompt it is: nobody's, unless a block of a person is in it."""
    personal = any(spec.scope == "principal" for spec in specs)
    return principal or "" if personal else ""
