"""A long campaign of `kill -9`: `python -m tests.crash.campaign --kills 200 --seed 1`.

Several agents get questions that overlap each other, from a client that sends what it sees, partial
answers included. The process is killed at random moments, now and then stopped in an orderly way,
and started again. At the end everything that was ever accepted must be answered, once, in order.
The suite runs a short one (`test_campaign.py`); a release runs a long one and prints its figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.client import RESPONSE, Client, client_of
from tests.crash.evidence import check_answer, query, settled, stored_messages
from tests.crash.plan import read_plan
from tests.crash.process import Server, World, until
from tests.crash.scenario import check_seen
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import UIMessage, user_message

STEPS = ("think,say:{n},pure", "say:{n},once", "growing", "pure,once", "say:{n},idempotent")
"""Every step but the last calls a tool: without one the answer would be over."""
LONGEST_LIFE = 160
"""Chunks the clients of one process may see live before it ends."""
UNSETTLED = "SELECT 1 FROM turns WHERE status IN ('accepted', 'running')"


@dataclass
class Conversation:
    """One agent, everything that was asked, and every client that ever looked."""

    agent: str
    asked: dict[str, str] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)

    def accepted(self, world: World) -> list[str]:
        """The requests that the store knows, in the order it took them."""
        sql = "SELECT id FROM turns WHERE agent = ? ORDER BY seq"
        return [row["id"] for row in query(world, sql, self.agent)]


class Campaign:
    """Kills a server again and again while it works, then holds the promises against it."""

    def __init__(self, world: World, seed: int, agents: int) -> None:
        self._world = world
        self._chance = random.Random(seed)
        self._conversations = [Conversation(f"talker/agent-{n}") for n in range(agents)]
        self.figures: Counter[str] = Counter()

    async def run(self, kills: int) -> None:
        """So many lives, each with new questions; then one that lives to the end."""
        for life in range(kills):
            await self._one_life(planned=life % 10 == 9)
        await self._world.start()
        for conversation in self._conversations:
            await self._check(conversation)

    async def _one_life(self, *, planned: bool) -> None:
        server = await self._world.start()
        length = self._chance.randint(0, LONGEST_LIFE)
        async with AsyncExitStack() as stack:
            for conversation in self._conversations:
                client = await stack.enter_async_context(
                    client_of(server, conversation.agent, joins=True)
                )
                conversation.clients.append(client)
                await self._ask_some(conversation, client)
            newest = [conversation.clients[-1] for conversation in self._conversations]
            await until(
                lambda: sum(c.live_chunks for c in newest) >= length or self._all_settled(),
                f"{length} chunks",
            )
            await self._end(server, planned=planned)

    async def _end(self, server: Server, *, planned: bool) -> None:
        self.figures["orderly stops" if planned else "kills"] += 1
        await (server.stop() if planned else server.kill())

    async def _ask_some(self, conversation: Conversation, client: Client) -> None:
        """New questions, one right behind the other: none waits for the answer before it."""
        for _ in range(self._chance.randint(0, 2)):
            request = f"{conversation.agent.rpartition('/')[2]}-q{len(conversation.asked)}"
            steps = self._chance.choices(STEPS, k=self._chance.randint(0, 3))
            plan = ";".join([*steps, "say:{n}"]).format(n=self._chance.randint(1, 30))
            conversation.asked[request] = f"{request}|{plan}"
            await client.ask(
                conversation.asked[request], request=request, history=seen_by(conversation, client)
            )

    def _all_settled(self) -> bool:
        return not query(self._world, UNSETTLED)

    async def _check(self, conversation: Conversation) -> None:
        """Everything accepted is answered, once, in order; no client saw what is not stored."""
        world, path = self._world, list[str]()
        for request in conversation.accepted(world):
            turn = await settled(world, request)
            check_answer(world, conversation.agent, request, conversation.asked[request])
            for client in conversation.clients:
                check_seen(world, client, request)
                self.figures["chunks seen"] += len(client.bodies(request))
            path += [f"m{request}", turn["message_id"]]
            self.figures["accepted inputs"] += 1
            self.figures["tool calls"] += len(read_plan(conversation.asked[request]).calls)
        assert [m["id"] for m in stored_messages(world, conversation.agent)] == path
        assert active_path(world, conversation.agent) == path


def seen_by(conversation: Conversation, client: Client) -> list[UIMessage]:
    """What the client shows: the transcript it was given, and what it has asked and heard since."""
    shown = {message["id"]: message for message in client.transcript_or_nothing()}
    for request, question in conversation.asked.items():
        heard = [f for f in client.frames if f["type"] == RESPONSE and f["id"] == request]
        if heard or f"m{request}" in shown:
            shown.setdefault(f"m{request}", user_message(f"m{request}", question))
        partial = partial_answer([json.loads(body) for body in client.bodies(request)])
        if partial is not None:
            shown.setdefault(partial["id"], partial)
    return list(shown.values())


def partial_answer(chunks: list[dict[str, object]]) -> UIMessage | None:
    """An answer as far as a client has heard it."""
    if not chunks or "messageId" not in chunks[0]:
        return None
    fold = Fold({"id": str(chunks[0]["messageId"]), "role": "assistant", "parts": []})
    for chunk in chunks:
        fold.apply(chunk)
    return fold.message


def active_path(world: World, agent: str) -> list[str]:
    """The ids from the root to the newest leaf."""
    rows = query(world, "SELECT id, parent_id FROM messages WHERE agent = ? ORDER BY seq", agent)
    parents = {row["id"]: row["parent_id"] for row in rows}
    path, current = list[str](), rows[-1]["id"] if rows else None
    while current is not None:
        path.insert(0, current)
        current = parents[current]
    return path


def main() -> None:
    """Run a campaign from the command line and print what it saw."""
    options = argparse.ArgumentParser(prog="python -m tests.crash.campaign")
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--agents", type=int, default=4)
    given = options.parse_args()

    async def campaign() -> Counter[str]:
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder))
            try:
                made = Campaign(world, given.seed, given.agents)
                await made.run(given.kills)
            finally:
                await world.end()
            return made.figures

    figures = asyncio.run(campaign())
    lines = [f"{name}: {count:,}" for name, count in sorted(figures.items())]
    sys.stdout.write("\n".join([*lines, "lost: 0, doubled: 0, out of order: 0"]) + "\n")


if __name__ == "__main__":
    main()
