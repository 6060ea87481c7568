"""`app.turns`: look at the turns of all agents, export them, replay them, fork them.

It reads what is stored. Only `fork` writes, and only a new agent; only `replay` runs anything, in a
store of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

from thinkwell.agent.think import Think
from thinkwell.core.errors import ConfigurationError, TurnError, TurnNotFoundError
from thinkwell.host.client import AgentAddress
from thinkwell.host.forking import Fork, ForkOptions, ForkTools
from thinkwell.host.host import Host
from thinkwell.host.replaying import Prepare, Replay, replay_case
from thinkwell.journal.budget import DEATHS
from thinkwell.journal.turns import TurnRecord
from thinkwell.models.resolve import ModelLike
from thinkwell.turn.recorded_requests import journal_before
from thinkwell.turn.travel.case import Case, LeftOut
from thinkwell.turn.travel.export import make_case
from thinkwell.turn.travel.recording import Tools
from thinkwell.turn.travel.story import PriceFunction, TurnStory, tell


class AppTurns:
    """The turns of an app that runs.

    `agent` is `class/name`; it is needed only where several agents have a turn of the same id.
    """

    def __init__(self, host: Callable[[], Host]) -> None:
        self._host = host

    async def list(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        since: float = 0.0,
        limit: int = 30,
    ) -> list[TurnRecord]:
        """The newest turns, newest first; `since` is a time in seconds since the epoch."""
        filters = {"agent": agent, "status": status, "parked": 0, "deaths": DEATHS, "after": since}
        rows = await self._host().store.fetch_in_background(
            "list_turns", {**filters, "limit": limit}
        )
        return [await self._find(row["id"], row["agent"]) for row in rows]

    async def show(
        self, request_id: str, *, agent: str | None = None, price: PriceFunction | None = None
    ) -> TurnStory:
        """What happened in a turn, step by step."""
        case = await self.export(request_id, agent=agent)
        earlier = await journal_before(self._host().store, case.turn)
        return await tell(case, price, earlier)

    async def export(
        self, request_id: str, *, agent: str | None = None, leave_out: Collection[LeftOut] = ()
    ) -> Case:
        """The turn with everything it refers to, for a file."""
        record = await self._find(request_id, agent)
        return await make_case(self._host().store, record, leave_out=leave_out)

    async def replay(
        self,
        request_id: str,
        *,
        agent: str | None = None,
        model: ModelLike = None,
        tools: Tools = "recorded",
        output: Any = None,
        prepare: Prepare | None = None,
    ) -> Replay:
        """Run a turn again with the code of this app, in a store of its own."""
        case = await self.export(request_id, agent=agent)
        host = self._host()
        cls = host.class_of(AgentAddress.of(case.turn.agent_id))
        if not issubclass(cls, Think):
            raise TurnError(f"{cls.__name__} has no turns: it does not chat.")
        return await replay_case(
            case,
            cls,
            model=model,
            tools=tools,
            features=host.features,
            output=output,
            prepare=prepare,
        )

    async def fork(
        self,
        request_id: str,
        *,
        at: int | str = 0,
        agent: str | None = None,
        name: str | None = None,
        model: ModelLike = None,
        system_prompt: str | None = None,
        tools: ForkTools = "ask",
    ) -> Fork:
        """Go on from a step of a turn in a new agent; nothing that was done is done again.

        `at` is the first step that is new, or the id of a message: then the conversation up to it
        is copied and nothing runs. `tools` says what becomes of calls that are not recorded.
        """
        record, host = await self._find(request_id, agent), self._host()
        named = None if model is None else host.lend(model)
        options = ForkOptions(
            at=at, name=name, model=named, system_prompt=system_prompt, tools=tools
        )
        return await host.fork(record, options)

    async def wait(self, request_id: str, *, agent: str | None = None) -> TurnRecord:
        """The turn once it is over. Leaving stops nothing."""
        record = await self._find(request_id, agent)
        activation = await self._host().agent(AgentAddress.of(record.agent_id), create=False)
        with activation.in_use():
            return await activation.until_over(request_id)

    async def _find(self, request_id: str, agent: str | None) -> TurnRecord:
        if not isinstance(cast("object", request_id), str):
            raise ConfigurationError(f"app.turns: the id of a turn is a text, not {request_id!r}.")
        rows = await self._host().store.fetch_all(
            "turns_with_id", {"id": request_id, "agent": agent}
        )
        if not rows:
            raise TurnNotFoundError(request_id)
        if len(rows) > 1:
            agents = ", ".join(row["agent"] for row in rows)
            raise TurnError(f"Several agents have a turn {request_id}: {agents}. Say agent=...")
        return TurnRecord.from_row(rows[0])
