"""What hooks know of an answer that came from outside the loop: all that the turn knows
(spec/02 §5.0.9, §5.10; DESIGN §4 Identity).
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.turns.support import Stage, loosely, running
from tests.turns.test_approvals import decide
from tests.turns.test_client_tools import LOCATE, answer, idle
from thinkwell import Principal, Think, tool
from thinkwell.features import Feature
from thinkwell.hooks import HookContext
from thinkwell.journal import asked
from thinkwell.journal.turns import newest_turn
from thinkwell.testing import call, pause

ANN, BOB = Principal(id="ann"), Principal(id="bob")


class Clerk(Think):
    """Looks, and signs when it is allowed to."""

    time_limits = {"grace": 0.0}

    async def on_start(self) -> None:
        self.heard: list[Any] = []
        loosely(self).add_hook("after_tool_call", self.note)

    def note(self, ctx: Any) -> None:
        if ctx.outcome in ("client", "denied"):
            self.heard.append(ctx)

    def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
        return True  # here anybody may answer for anybody

    @tool
    async def look(self) -> str:
        """Look around."""
        return "seen"

    @tool(needs_approval=True)
    async def sign(self) -> str:
        """Sign."""
        return "signed"


def turns(stage: Stage[Any]) -> Any:
    return stage.agent._turns


def facts(stage: Stage[Any]) -> dict[str, Any]:
    """What the hook was told, where it was told once."""
    (ctx,) = stage.agent.heard
    names = ("request_id", "trigger", "continuation", "principal", "step_number")
    return {name: getattr(ctx, name) for name in names}


def of_turn(**changed: Any) -> dict[str, Any]:
    known = {
        "request_id": "q1",
        "trigger": "ws-chat",
        "continuation": False,
        "principal": ANN,
        "step_number": 0,
    }
    return {**known, **changed}


class Toolbox(Feature):
    """Says which tools it has, and where it was asked."""

    name = "toolbox"
    inside: ClassVar[list[bool]]

    def tools(self, turn: HookContext) -> dict[str, Any]:
        self.inside.append(asked._running() is not None)  # pyright: ignore[reportPrivateUsage]
        return {}


class Equipped(Clerk):
    features = [Toolbox()]


async def test_features_are_asked_for_the_tool_of_a_call_outside_of_the_transaction():
    """DESIGN §8.9: code of users inside it would hold up the commits of all agents."""
    Toolbox.inside = []
    async with running(Equipped, [call("locate", {})], "in Paris") as stage:
        ann = await stage.connect("a", principal=ANN)
        await ann.ask("where?", clientTools=[LOCATE])
        await ann.until_end()
        before = len(Toolbox.inside)
        await answer(ann, "call-1")
        await idle(stage)
        assert len(Toolbox.inside) > before
        assert not any(Toolbox.inside)


async def test_the_result_of_a_client_tool_belongs_to_the_turn_that_asked_for_it():
    async with running(Clerk, [call("look")], [call("locate", {})], "in Paris") as stage:
        ann = await stage.connect("a", principal=ANN)
        bob = await stage.connect("b", principal=BOB)
        await ann.ask("where?", clientTools=[LOCATE])
        await ann.until_end()
        await answer(bob, "call-2")
        await idle(stage)
        assert facts(stage) == of_turn(step_number=1)


async def test_so_does_one_that_comes_while_the_turn_still_streams():
    gate = pause()
    async with running(Clerk, [call("locate", {}), gate], "in Paris") as stage:
        ann = await stage.connect("a", principal=ANN)
        await ann.ask("where?", clientTools=[LOCATE])
        await gate.reached()
        await answer(ann)
        await ann.until(lambda frame: frame["type"] == "cf_agent_message_updated")
        assert facts(stage) == of_turn()
        assert stage.agent.heard[0].abort_signal is turns(stage).running.signal
        gate.open()
        await idle(stage)


async def test_a_refusal_belongs_to_the_turn_whose_call_it_refuses():
    async with running(Clerk, [call("sign")], "as you like") as stage:
        ann = await stage.connect("a", principal=ANN)
        await ann.ask("sign it")
        await ann.until_end()
        await decide(ann, approved=False)
        await idle(stage)
        assert facts(stage) == of_turn()
        assert stage.agent.heard[0].tool is not None


@pytest.mark.parametrize("steps", [1, 2])
async def test_of_a_continuation_it_says_that_and_counts_its_own_steps(steps: int):
    looks = [[call("look")] for _ in range(steps - 1)]
    model = [call("locate", {})], *looks, [call("locate", {})], "in Paris"
    async with running(Clerk, *model) as stage:
        ann = await stage.connect("a", principal=ANN)
        await ann.ask("where?", clientTools=[LOCATE])
        await ann.until_end()
        await answer(ann)
        await idle(stage)
        stage.agent.heard.clear()
        going_on = await newest_turn(turns(stage).parts.store, "clerk/x")
        assert going_on is not None
        await answer(ann, f"call-{steps + 1}")
        await idle(stage)
        assert facts(stage) == of_turn(
            request_id=going_on.request_id,
            trigger="auto-continuation",
            continuation=True,
            step_number=steps - 1,
        )
