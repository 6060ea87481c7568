"""Results that come beside the loop, or a second time, and the hooks that may change them
(spec/02 §5.9; spec/04 §15.1; DESIGN §8.15, §8.16).
"""

from __future__ import annotations

import asyncio
import copy
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Stage, part_of, running, until_event, untyped
from thinkwell import AbortTurn, Think, tool
from thinkwell.hooks.answers import Block, Fail, Substitute
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call
from thinkwell.tools.reconcile import Done

SECRET, HIDDEN = "sk-live-4711", "[hidden]"


def found(earlier: Any) -> Any:
    return Done(f"{earlier.tool_name}: {SECRET}")


def quoting(*_: Any) -> Any:
    raise OSError(f"quoting {SECRET}")


class Keeper(Think):
    time_limits = {"grace": 0.0}
    seen: list[Any]
    began: asyncio.Event
    go_on: asyncio.Event

    async def on_start(self) -> None:
        self.seen, self.began, self.go_on = [], asyncio.Event(), asyncio.Event()

    @tool
    async def stuck(self) -> str:
        """Ignores every cancel, then gives it."""
        return await self._hold()

    @tool(reconcile=found)
    async def known(self) -> str:
        """Somebody else knows what came of it."""
        return await self._hold()

    async def _hold(self) -> str:
        self.began.set()
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                continue
        return f"late {SECRET}"

    def on_tool_result(self, ctx: Any) -> Any:
        self.seen.append(ctx.result)
        return {"result": str(ctx.result).replace(SECRET, HIDDEN)}


async def ledger(stage: Stage[Any]) -> list[Any]:
    """The outputs of the first turn's calls, as they are stored."""
    parts = untyped(stage)._turns.parts
    turn = stage.fields("chat:turn:start")[0]["request_id"]
    rows = await parts.store.fetch_all(
        "calls_of_turn", {"agent": parts.owner.agent_id, "turn": turn}
    )
    return [row["output"] for row in rows]


async def stopped(stage: Stage[Any]) -> None:
    """A turn whose tool is left behind."""
    turn = asyncio.ensure_future(stage.agent.run("hi"))
    await stage.agent.began.wait()
    await stage.agent.cancel_chat()
    await turn


class Files(Think):
    @tool
    async def read(self) -> dict[str, Any]:
        """Reads a file."""
        return {"ssn": SECRET, "owner": {"ssn": SECRET}, "all": [{"ssn": SECRET}]}


def _deep(result: Any) -> None:
    result["owner"]["ssn"] = HIDDEN


def _in_a_list(result: Any) -> None:
    result["all"][0]["ssn"] = HIDDEN


def _of_a_shallow_copy(result: Any) -> None:
    dict(result)["all"].clear()


@pytest.mark.parametrize(
    "edit", [lambda r: r.update(ssn=HIDDEN), _deep, _in_a_list, _of_a_shallow_copy]
)
async def test_ac96_a_result_that_a_hook_edits_in_place_is_withheld(
    edit: Any, caplog: pytest.LogCaptureFixture
):
    async with running(Files, [call("read")], "ok") as stage:
        stage.agent.add_hook("on_tool_result", lambda ctx: edit(ctx.result))
        await stage.agent.run("hi")
        part = part_of(await stage.answer())
        assert part["state"] == "output-error"
        assert SECRET not in str(part) + str(stage.model.requests[1].messages)
        assert await ledger(stage) == ["null"]
    assert "cannot be changed. Return the new value" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("edit", [_deep, _in_a_list])
@pytest.mark.parametrize("field", ["output", "input"])
async def test_ac96_what_after_tool_call_edits_in_place_is_an_error_of_the_hook(
    edit: Any, field: str
):
    class Echoing(Think):
        @tool
        async def echo(self, owner: dict[str, str], all: list[dict[str, str]]) -> Any:
            """Gives back what it gets."""
            return {"owner": owner, "all": all}

    given = {"owner": {"ssn": "a"}, "all": [{"ssn": "b"}]}
    async with running(Echoing, [call("echo", given)], "ok") as stage:
        stage.agent.add_hook("after_tool_call", lambda ctx: edit(getattr(ctx, field)))
        await stage.agent.run("hi")
        assert [each["event"] for each in stage.fields("hook:error")] == ["after_tool_call"]
        part = part_of(await stage.answer())
        assert (part["input"], part["output"]) == (given, given)


async def test_a_result_that_a_hook_edits_in_a_deep_copy_and_returns_is_told():
    def hide(ctx: Any) -> Any:
        result = copy.deepcopy(ctx.result)
        _deep(result)
        return {"result": {**result, "all": ctx.result["all"]}}

    async with running(Files, [call("read")], "ok") as stage:
        stage.agent.add_hook("on_tool_result", hide)
        stage.agent.add_hook("on_tool_result", lambda ctx: {"result": ctx.result})
        await stage.agent.run("hi")
        output = part_of(await stage.answer())["output"]
        assert output["owner"] == {"ssn": HIDDEN}
        assert output["all"] == [{"ssn": SECRET}]


async def test_an_outcome_that_comes_late_goes_through_the_hook_once_before_it_is_stored():
    async with running(Keeper, [call("stuck")], [call("stuck")], "ok") as stage:
        await stopped(stage)
        stage.agent.go_on.set()
        await until_event(stage, "tool:ended_late")
        assert await ledger(stage) == [f'"late {HIDDEN}"']
        await stage.agent.run("again")
        assert part_of(await stage.answer(), "call-2")["output"] == f"late {HIDDEN}"
        assert stage.agent.seen == [f"late {SECRET}"]


async def test_an_error_that_comes_late_goes_through_on_tool_error():
    class Failing(Keeper, name="keeper"):
        @tool
        async def fails(self) -> str:
            """Fails late."""
            raise OSError(await self._hold())

        def on_tool_error(self, ctx: Any) -> Any:
            return {"error": str(ctx.error).replace(SECRET, HIDDEN)}

    async with running(Failing, [call("fails")]) as stage:
        await stopped(stage)
        stage.agent.go_on.set()
        await until_event(stage, "tool:ended_late")
        assert str(stage.fields("tool:ended_late")[0]["error"]) == f"late {HIDDEN}"


async def test_a_hook_that_wants_to_end_the_turn_of_a_late_outcome_withholds_it():
    class Ending(Keeper, name="keeper"):
        def on_tool_result(self, ctx: Any) -> Any:
            raise AbortTurn(f"no {ctx.result}")

    async with running(Ending, [call("stuck")]) as stage:
        await stopped(stage)
        stage.agent.go_on.set()
        await until_event(stage, "tool:ended_late")
        assert await ledger(stage) == ["null"]


async def test_what_reconcile_finds_is_written_down_as_the_hook_leaves_it():
    async with running(Keeper, [call("known")], [call("known")], "ok") as stage:
        await stopped(stage)
        await stage.agent.run("again")
        assert part_of(await stage.answer(), "call-2")["output"] == f"known: {HIDDEN}"
        assert await ledger(stage) == [f'"known: {HIDDEN}"']
        assert stage.agent.seen == [f"known: {SECRET}"]
        stage.agent.go_on.set()


async def test_an_outcome_that_somebody_tells_is_written_down_as_the_hook_leaves_it():
    async with running(Keeper, [call("stuck")], [call("stuck")], "ok") as stage:
        await stopped(stage)
        assert await stage.agent.resolve_tool_outcome("call-1", output=SECRET)
        assert not await stage.agent.resolve_tool_outcome("call-9", output=SECRET)
        assert await ledger(stage) == [f'"{HIDDEN}"']
        await stage.agent.run("again")
        assert part_of(await stage.answer(), "call-2")["output"] == HIDDEN
        assert stage.agent.seen == [SECRET]
        stage.agent.go_on.set()


async def test_what_on_tool_error_makes_a_success_goes_through_on_tool_result():
    class Recovering(Keeper, name="keeper"):
        @tool
        async def breaks(self) -> str:
            """Fails."""
            raise OSError

        def on_tool_error(self, ctx: Any) -> Any:
            return {"result": SECRET}

    async with running(Recovering, [call("breaks")], "ok") as stage:
        await stage.agent.run("hi")
        assert part_of(await stage.answer())["output"] == HIDDEN


@pytest.mark.parametrize("decision", [Substitute(SECRET), Block(SECRET), Fail(SECRET)])
async def test_the_journal_does_not_keep_what_a_policy_gives_before_the_hook_has_seen_it(
    tmp_path: Path, decision: Any
):
    class Policy(Keeper, name="keeper"):
        def before_tool_call(self, ctx: Any) -> Any:
            return decision

        def on_tool_error(self, ctx: Any) -> Any:
            return {"result": str(ctx.error)}

    store = SqliteStore(tmp_path / "x.db")
    async with running(Policy, [call("stuck")], "ok", store=store) as stage:
        await stage.agent.run("hi")
        assert HIDDEN in part_of(await stage.answer())["output"]
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert files
    assert not any(SECRET.encode() in data for data in files)


class Quoting(Think, name="keeper"):
    """Its policies and its tools quote the secret in what they raise."""

    time_limits = {"grace": 0.0}
    began: asyncio.Event
    go_on: asyncio.Event

    async def on_start(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    @tool(needs_approval=quoting)
    async def judged(self) -> str:
        """Its predicate raises."""
        return "ran"

    @tool
    async def plain(self) -> str:
        """Does nothing."""
        return "ran"

    @tool(reconcile=quoting)
    async def fails(self) -> str:
        """Fails late, and nobody can find out."""
        self.began.set()
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                continue
        quoting()
        return "never"

    def on_tool_error(self, ctx: Any) -> Any:
        return {"error": str(ctx.error).replace(SECRET, HIDDEN)}


def errors(log: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage().partition(" (")[0] for r in log.records if r.levelno >= logging.ERROR]


async def test_5_9_what_a_stopped_tool_raises_late_is_logged_once_and_as_the_hook_left_it(
    caplog: pytest.LogCaptureFixture,
):
    async with running(Quoting, [call("fails")], "ok") as stage:
        await stopped(stage)
        stage.agent.go_on.set()
        await until_event(stage, "tool:ended_late")
    assert errors(caplog) == ["the tool 'fails' failed"]
    assert f"OSError, told as: quoting {HIDDEN}" in caplog.text
    assert SECRET not in caplog.text


async def test_what_a_stopped_tool_raises_once_its_agent_is_gone_is_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
):
    async with running(Quoting, [call("fails")], "ok") as stage:
        await stopped(stage)
        agent = stage.agent
    agent.go_on.set()
    while not errors(caplog):
        await asyncio.sleep(0.001)
    assert errors(caplog) == ["the tool 'fails', left behind, failed"]
    assert "OSError, its text is withheld" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("exposed", [False, True])
async def test_5_9_what_an_approval_predicate_raises_is_logged_as_the_hook_left_it(
    exposed: bool, caplog: pytest.LogCaptureFixture
):
    async with running(Quoting, [call("judged")], "ok") as stage:
        stage.agent.expose_errors = exposed
        await stage.agent.run("hi")
    assert len(errors(caplog)) == 1
    assert f"OSError, told as: quoting {HIDDEN}" in caplog.text
    assert SECRET not in caplog.text


async def test_5_9_what_before_tool_call_raises_is_logged_as_the_hook_left_it(
    caplog: pytest.LogCaptureFixture,
):
    async with running(Quoting, [call("plain")], "ok") as stage:
        stage.agent.add_hook("before_tool_call", quoting)
        await stage.agent.run("hi")
    assert len(errors(caplog)) == 1
    assert f"OSError, told as: quoting {HIDDEN}" in caplog.text
    assert SECRET not in caplog.text


async def test_what_a_reconcile_raises_is_logged_without_its_text_where_a_hook_might_hide_it(
    caplog: pytest.LogCaptureFixture,
):
    async with running(Quoting, [call("fails")], [call("fails")], "ok") as stage:
        await stopped(stage)
        await stage.agent.run("again")
        assert errors(caplog) == ["reconcile of 'fails' failed"]
        assert "in quoting" in caplog.text
        assert "OSError, its text is withheld" in caplog.text
        stage.agent.go_on.set()
        await until_event(stage, "tool:ended_late")
    assert SECRET not in caplog.text
