"""The key of a call is the same however often and wherever it runs (spec/04 §15.1, §23.11)."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest

from tests.turns.support import Stage, running
from thinkwell import Think, ToolContext, tool
from thinkwell.core import json
from thinkwell.host.client import AgentAddress
from thinkwell.journal.ledger import CallName
from thinkwell.messages.message import tool_parts
from thinkwell.testing import call


class Payer(Think):
    keys: ClassVar[list[str]] = []

    @tool(effect="idempotent")
    async def pay(self, amount: float, ctx: ToolContext) -> str:
        """Pay."""
        Payer.keys.append(ctx.idempotency_key)
        if amount < 0:
            raise ValueError("Nobody pays less than nothing.")
        return f"paid {amount:g}"

    @tool(effect="idempotent", needs_approval=True)
    async def ask(self, amount: int, ctx: ToolContext) -> str:
        """Pay if somebody allows it."""
        Payer.keys.append(ctx.idempotency_key)
        return f"paid {amount}"


@pytest.fixture(autouse=True)
def fresh() -> None:
    Payer.keys = []


def key_of(root: str, tool_name: str, call_input: dict[str, Any], occurrence: int) -> str:
    return CallName("payer/x", root, tool_name, call_input, occurrence).key


async def retry(stage: Stage[Payer], request_id: str) -> None:
    activation = await stage.host.agent(AgentAddress("payer", "x"))
    await activation.retry_turn(request_id)
    await activation.wait_until_idle()


async def idle(stage: Stage[Payer]) -> None:
    await (await stage.host.agent(AgentAddress("payer", "x"))).wait_until_idle()


async def outputs(stage: Stage[Payer]) -> list[Any]:
    parts = [part for message in await stage.messages() for part in tool_parts(message)]
    return [part.get("output") for part in parts]


async def test_it_is_made_of_agent_turn_tool_input_and_count_and_not_of_the_providers_id():
    nine, ten = {"amount": 9}, {"amount": 10}
    steps = [call("pay", nine, id="x"), call("pay", nine, id="y")], [call("pay", ten)], "Done."
    async with running(Payer, *steps) as stage:
        result = await stage.agent.run("pay")
    root = result.request_id
    first, second = (key_of(root, "pay", nine, count) for count in (1, 2))
    assert sorted(Payer.keys[:2]) == sorted([first, second])
    assert Payer.keys[2] == key_of(root, "pay", ten, 1)


async def test_a_continuation_has_the_keys_of_the_turn_it_goes_on_with():
    nine = {"amount": 9}
    steps = [call("ask", nine, id="c1")], [call("ask", nine, id="c2")], "Done."
    async with running(Payer, *steps) as stage:
        root = (await stage.agent.run("pay")).request_id
        for number in (1, 2):
            await stage.agent.respond_to_approval(f"c{number}", approved=True)
            await idle(stage)
    assert Payer.keys == [key_of(root, "ask", nine, count) for count in (1, 2)]


async def test_a_retried_turn_gets_the_results_that_its_calls_have():
    steps = [call("pay", {"amount": 9}, id="a")], RuntimeError("the model is gone")
    again = [call("pay", {"amount": 9}, id="b")], [call("pay", {"amount": 8}, id="c")], "Done."
    async with running(Payer, *steps, *again) as stage:
        stage.agent.max_retries = 0
        failed = await stage.agent.run("pay")
        assert (failed.status, len(Payer.keys)) == ("error", 1)
        await retry(stage, failed.request_id)
        assert await outputs(stage) == ["paid 9", "paid 8"]
    root = failed.request_id
    assert Payer.keys == [key_of(root, "pay", {"amount": n}, 1) for n in (9, 8)]


async def test_turns_of_two_agents_share_no_key_although_their_clients_chose_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
):
    """Else a payment service would answer one customer with the receipt of another."""
    steps = [[call("pay", {"amount": 9})], "Done."]
    async with running(Payer, *steps, *steps) as stage:
        monkeypatch.setattr(Payer, "model", stage.model)
        for name in ("ann", "bob"):
            activation = await stage.host.agent(AgentAddress("payer", name))
            payer = cast("Payer", activation.agent)
            await payer.submit("pay", submission_id="1")
            await activation.wait_until_idle()
    assert len(Payer.keys) == len(set(Payer.keys)) == 2


@pytest.mark.parametrize("done", [True, False])
async def test_a_retry_knows_the_calls_that_an_earlier_release_made(
    monkeypatch: pytest.MonkeyPatch, done: bool
):
    """Their keys did not name the agent: what was done stays done, what failed keeps its key."""
    answer = [call("pay", {"amount": 9 if done else -1}, id="a")]
    steps = answer, RuntimeError("the model is gone"), answer, "Done."
    async with running(Payer, *steps) as stage:
        stage.agent.max_retries = 0
        with monkeypatch.context() as before:
            before.setattr(CallName, "key", CallName.older_key)
            failed = await stage.agent.run("pay")
        await retry(stage, failed.request_id)
    assert len(set(Payer.keys)) == 1
    assert len(Payer.keys) == (1 if done else 2)


def test_equal_input_is_equal_text():
    assert json.canonical({"a": -0.0, "b": [1]}) == json.canonical({"b": [1], "a": 0.0})
    assert json.canonical({"a": 1}) != json.canonical({"a": 1.0})
