"""on_turn_start: the input is not in the tree yet, but nothing is lost (spec/02 §5.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import Think
from thinkwell.core.errors import AbortTurn, AgentDefinitionError, FailTurn


class Plain(Think):
    """Overrides nothing."""


@pytest.mark.parametrize(
    ("ending", "status"), [(AbortTurn("no"), "aborted"), (FailTurn("broken"), "error")]
)
async def test_5_0_7_a_hook_that_ends_the_turn_at_its_start_keeps_the_question(
    ending: BaseException, status: str
):
    def end(_: Any) -> None:
        raise ending

    async with running(Plain, "never") as stage:
        stage.agent.add_hook("on_turn_start", end)
        assert (await stage.agent.run("hi")).status == status
        assert [message["role"] for message in await stage.agent.get_messages()] == ["user"]
        assert stage.model.requests == []


def test_12_1_an_alias_as_a_method_is_refused_with_the_name_to_write():
    with pytest.raises(AgentDefinitionError, match="before_step"):
        type("Wrong", (Think,), {"pre_request": lambda self, ctx: None})
