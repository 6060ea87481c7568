"""Nothing fails silently: whatever a tool, a hook or another function of the app raises leaves one
line in the log, with its traceback, the agent, the turn and the name of what failed (spec/02
§5.0.6, §13.2).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Stage, running, untyped
from thinkwell import AbortTurn, App, Think, ToolContext, rpc, tool
from thinkwell.errors import ToolError
from thinkwell.hooks.registry import EVENTS
from thinkwell.testing import call
from thinkwell.tools import Scope

NOT_IN_A_PLAIN_TURN = {"on_scope_register", "on_scope_unregister"}
IN_FAILED_TURNS = {"on_tool_error", "classify_chat_error", "on_chat_error"}


class BoomError(Exception):
    """What the code of the app raises."""


class Clerk(Think):
    @tool
    async def look(self) -> str:
        """Looks."""
        return "seen"

    @tool
    async def fails(self) -> str:
        """Fails."""
        raise BoomError("boom")

    @tool
    async def refuses(self) -> str:
        """Says no, on purpose."""
        raise ToolError("no")

    @tool
    async def odd(self) -> Any:
        """Gives what JSON cannot hold."""
        return object()

    @tool(needs_approval=lambda value, ctx: 1 / 0 > 1)
    async def guarded(self) -> str:
        """Its policy is broken."""
        return "never"


def boom(*_: Any) -> Any:
    raise BoomError("boom")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """The lines about failures so far."""
    caplog.set_level(logging.DEBUG, "thinkwell")
    return lambda: [r for r in caplog.records if r.levelno >= logging.WARNING]


def one(records: list[logging.LogRecord]) -> dict[str, Any]:
    """The only line, which has a traceback."""
    (record,) = records
    assert record.name.startswith("thinkwell.")
    assert record.exc_info
    return {**vars(record), "text": record.getMessage(), "error": record.exc_info[1]}


def turn_of(stage: Stage[Any]) -> str:
    return stage.fields("chat:turn:start")[-1]["request_id"]


RARE = {"on_chat_abort", "on_chat_recovery"}
STEPS: dict[str, list[Any]] = {
    "on_tool_error": [[call("refuses")], "ok"],
    "on_chat_abort": [],
    "classify_chat_error": [],
    "on_chat_error": [],
}


@pytest.mark.parametrize("event", sorted(set(EVENTS) - NOT_IN_A_PLAIN_TURN - RARE))
async def test_a_hook_that_raises_leaves_one_line_that_names_it(event: str, lines: Any):
    steps = STEPS.get(event, [[call("look")], "ok"])
    async with running(Clerk, *steps) as stage:
        failing = 0

        def once(*_: Any) -> Any:
            nonlocal failing
            failing += 1
            if failing == 1:
                raise BoomError("boom")

        untyped(stage).add_hook(event, once, name="guard")
        await stage.agent.run("hi")
    found = [r for r in lines() if vars(r).get("hook") == "guard"]
    said = one(found)
    assert (said["agent"], said["turn"]) == ("clerk/x", turn_of(stage))
    assert "guard" in said["text"]
    assert "clerk/x" in said["text"]
    assert turn_of(stage) in said["text"]
    if event != "on_tool_result":  # of a redactor only the type is told
        assert isinstance(said["error"], BoomError) or event == "on_tool_error"
    others = [r for r in lines() if r not in found]
    model_ran_out = steps == []
    assert len(others) == (1 if model_ran_out else 0)


WRONG_ANSWERS = {
    "before_turn": "be brief",
    "before_step": {"temprature": 1},
    "on_response": 17,
    "before_tool_call": {"action": "block", "raeson": "no"},
    "on_tool_result": "[redacted]",
    "on_tool_error": "[redacted]",
}


@pytest.mark.parametrize("event", WRONG_ANSWERS)
async def test_a_wrong_answer_of_a_hook_is_one_line_that_says_so_without_our_traceback(
    event: str, lines: Any
):
    name = "refuses" if event == "on_tool_error" else "look"
    async with running(Clerk, [call(name)], "ok") as stage:
        untyped(stage).add_hook(event, lambda _: WRONG_ANSWERS[event], name="guard")
        await stage.agent.run("hi")
    (record,) = lines()
    assert vars(record)["hook"] == "guard"
    assert record.exc_info is None
    assert "guard returned " in record.getMessage()
    assert "[redacted]" not in record.getMessage()


async def test_a_hook_of_the_class_is_named_by_its_class(lines: Any):
    class Noisy(Clerk):
        def on_step_finish(self, ctx: Any) -> None:
            raise BoomError("boom")

    async with running(Noisy, "ok") as stage:
        assert (await stage.agent.run("hi")).status == "completed"
    assert one(lines())["hook"] == "Noisy.on_step_finish"


@pytest.mark.parametrize("event", ["on_chunk", "on_step_finish", "before_tool_call"])
async def test_under_strict_hooks_the_failed_turn_is_the_one_line(event: str, lines: Any):
    class Strict(Clerk, name="clerk"):
        strict_hooks = True

    async with running(Strict, [call("look")], "ok") as stage:
        untyped(stage).add_hook(event, boom, name="guard")
        assert (await stage.agent.run("hi")).status == "error"
    said = one(lines())
    assert (said["hook"], said["agent"], said["turn"]) == ("guard", "clerk/x", turn_of(stage))


async def test_the_hooks_of_an_abort_and_of_scopes_leave_a_line(lines: Any):
    async with running(Clerk, "ok") as stage:
        stage.agent.add_hook("on_turn_start", stop)
        stage.agent.add_hook("on_chat_abort", boom, name="ended")
        await stage.agent.run("hi")
        assert one(lines())["hook"] == "ended"
        stage.agent.add_hook("on_scope_register", boom, name="scoped")
        stage.agent.scopes.register(Scope(name="s", context="x"))
    assert [vars(r)["hook"] for r in lines()] == ["ended", "scoped"]
    assert vars(lines()[1])["agent"] == "clerk/x"


def stop(_: Any) -> None:
    raise AbortTurn("enough")


@pytest.mark.parametrize(("name", "kind"), [("fails", BoomError), ("odd", Exception)])
@pytest.mark.parametrize("exposed", [False, True])
async def test_a_tool_that_raises_leaves_one_line(name: str, kind: Any, exposed: bool, lines: Any):
    class Exposed(Clerk, name="clerk"):
        expose_errors = exposed

    async with running(Exposed, [call(name)], "ok") as stage:
        await stage.agent.run("hi")
    said = one(lines())
    assert isinstance(said["error"], kind)
    assert (said["agent"], said["turn"], said["tool"]) == ("clerk/x", turn_of(stage), name)


async def test_a_policy_of_a_tool_that_raises_leaves_one_line(lines: Any):
    async with running(Clerk, [call("guarded")], "ok") as stage:
        await stage.agent.run("hi")
    said = one(lines())
    assert (said["code"], said["tool"]) == ("needs_approval of 'guarded'", "guarded")


@pytest.mark.parametrize("exposed", [False, True])
async def test_a_turn_that_fails_leaves_one_line_whatever_clients_read(exposed: bool, lines: Any):
    class Exposed(Clerk, name="clerk"):
        expose_errors = exposed

        def on_chat_error(self, error: Any, ctx: Any) -> Any:
            return "Sorry." if exposed else None

        def get_system_prompt(self) -> str:
            raise BoomError("boom")

    async with running(Exposed, "ok") as stage:
        await stage.agent.run("hi")
    said = one(lines())
    assert isinstance(said["error"], BoomError)
    assert (said["hook"], said["agent"], said["turn"]) == (
        "get_system_prompt",
        "clerk/x",
        turn_of(stage),
    )


@pytest.mark.parametrize("error", [AbortTurn("stop"), ToolError("no")])
async def test_ends_that_are_meant_are_no_errors(error: BaseException, lines: Any):
    class Ending(Clerk, name="clerk"):
        @tool
        async def ends(self, ctx: ToolContext) -> str:
            """Ends it."""
            raise error

    async with running(Ending, [call("ends")], "ok") as stage:
        await stage.agent.run("hi")
    assert lines() == []


async def test_a_turn_that_somebody_cancels_is_no_error(lines: Any):
    async with running(Clerk, [call("look")], "ok") as stage:
        stage.agent.add_hook("on_turn_start", lambda _: stage.agent.cancel_chat())
        assert (await stage.agent.run("hi")).status == "aborted"
    assert lines() == []


async def test_a_call_of_a_client_that_raises_leaves_one_line_and_wrong_arguments_none(lines: Any):
    class Served(Clerk, name="clerk"):
        @rpc
        def add(self, a: int) -> int:
            return a + int("x")

    async with running(Served) as stage:
        client = await stage.connect()
        for number, args in enumerate((["no"], [1])):
            await client.send(type="rpc", id=f"c{number}", method="add", args=args)
            await client.until(lambda f, n=number: f.get("id") == f"c{n}")
    said = one(lines())
    assert (said["code"], said["agent"]) == ("rpc:add", "clerk/x")
    assert "hook" not in said


async def test_a_turn_that_fails_outside_of_the_apps_code_names_none(lines: Any):
    async with running(Clerk) as stage:  # the model has nothing to say
        await stage.agent.run("hi")
    assert not {"hook", "code"} & one(lines()).keys()


async def test_a_mistake_in_the_program_is_one_line_without_our_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    class Keyless(Think):
        model = "acme-without-a-provider"

    async with App(agents=[Keyless], store=f"sqlite:///{tmp_path}/x.db") as app:
        result = await app.agent(Keyless).run("hi")
    [record] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.exc_info is None
    assert record.getMessage().endswith(f": {result.error}")
    assert "'acme-without-a-provider' names no provider." in record.getMessage()
