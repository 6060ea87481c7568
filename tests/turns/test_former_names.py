"""What agents had once is refused, or answered with what to write now."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import App, Think, create_agent, rpc, tool
from thinkwell.core.errors import AgentDefinitionError
from thinkwell.features import Without
from thinkwell.testing import ScriptedModel


@pytest.mark.parametrize(
    ("name", "value", "now"),
    [
        ("cancel_grace", 5.0, 'time_limits = {"grace": 5}'),
        ("max_recovery_attempts", 3, "chat_recovery = ChatRecovery(max_attempts=3)"),
        ("suggestions", {"A": "b"}, "from thinkwell.features import Suggestions"),
    ],
)
def test_a_setting_that_has_gone_is_refused_with_the_one_to_write(name: str, value: Any, now: str):
    with pytest.raises(AgentDefinitionError, match=f"Old.{name} would do nothing") as refused:
        type("Old", (Think,), {name: value})
    assert now in str(refused.value)
    with pytest.raises(TypeError, match=f"no setting '{name}'") as refused:
        create_agent(model=ScriptedModel(), **{name: value})
    assert now in str(refused.value)


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("get_branches", "branches.below"),
        ("set_active_leaf", "branches.choose"),
        ("get_turn_details", "turn_details.get"),
    ],
)
async def test_a_method_that_has_gone_is_refused_as_an_override_and_named_when_called(
    name: str, now: str
):
    async def override(self: Any) -> None: ...

    with pytest.raises(AgentDefinitionError, match=f"Old.{name} would never be called") as refused:
        type("Old", (Think,), {name: override})
    assert now in str(refused.value)
    assert "Without" in str(refused.value)
    agent = create_agent(model=ScriptedModel())
    with pytest.raises(AttributeError, match=now):
        getattr(agent, name)
    with pytest.raises(AttributeError, match=now):
        getattr(App([Think], store="sqlite://:memory:").agent(Think, "x"), name)


async def test_whoever_leaves_the_feature_out_answers_clients_with_a_method_of_that_name():
    class Own(Think):
        features = [Without("branches")]

        @rpc(name="getBranches", read_only=True)
        async def get_branches(self) -> list[str]:
            return ["mine"]

    async with running(Own) as stage:
        assert await stage.agent.get_branches() == ["mine"]


def test_a_method_and_a_tool_of_such_a_name_are_the_class_own():
    class Own(Think):
        def suggestions(self) -> list[str]:
            return []

        @tool
        async def get_branches(self) -> list[str]:
            """The branches of the bank."""
            return []

    assert Own.agent_class == "own"
