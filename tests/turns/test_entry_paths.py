"""All ways into a turn are one turn (spec/02 §2, §3.3-3.13; M-001, M-045; AC42, AC49-AC51,
AC55-AC57).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.turns.entry import SCHEMA, Assistant, Callback, drain, fail, hook_lines, record
from tests.turns.support import Client, running
from thinkwell.core.errors import NestedTurnError, TurnChainError
from thinkwell.messages.message import text_of, user_message
from thinkwell.testing import call, pause, text

MESSAGE = user_message("u1", "hi")
Path = Callable[[Any, Client], Awaitable[Any]]
PATHS: dict[str, Path] = {
    "socket": lambda _, client: client.ask("hi"),
    "run": lambda agent, _: agent.run("hi"),
    "submit": lambda agent, _: agent.submit("hi"),
    "stream": lambda agent, _: drain(agent.stream("hi")),
    "save_messages": lambda agent, _: agent.save_messages([MESSAGE]),
    "save_messages with a function": lambda agent, _: agent.save_messages(lambda _: [MESSAGE]),
    "run_turn wait": lambda agent, _: agent.run_turn(input="hi"),
    "run_turn submit": lambda agent, _: agent.run_turn(mode="submit", input="hi"),
    "run_turn stream": lambda agent, _: agent.run_turn(
        mode="stream", input="hi", callback=Callback()
    ),
    "submit_messages": lambda agent, _: agent.submit_messages([MESSAGE]),
    "chat with a callback": lambda agent, _: agent.chat("hi", Callback()),
    "chat": lambda agent, _: agent.chat("hi"),
    "chat_stream": lambda agent, _: drain(agent.chat_stream("hi")),
    "steer": lambda agent, _: agent.steer("hi"),
}
CONTINUATIONS: dict[str, Path] = {
    "continue_last_turn": lambda agent, _: agent.continue_last_turn(),
    "run_turn continuation": lambda agent, _: agent.run_turn(continuation=True),
}


async def hooks_of(path: Path, *, before: int = 0) -> list[str]:
    """The hook log of one turn that calls a tool, after some other turns."""
    answer = [text("one"), call("a")], "two"
    async with running(Assistant, *["first"] * before, *answer) as stage:
        for _ in range(before):
            await stage.agent.run("before")
        client = await stage.connect()
        record(stage)
        await path(stage.agent, client)
        await stage.log.until("hook on_chat_response")
        return hook_lines(stage)


class TestEveryWayIn:
    @pytest.mark.parametrize("path", PATHS)
    async def test_m001_the_same_answer_gives_the_same_hook_log(self, path: str):
        log = await hooks_of(PATHS[path])
        assert log == await hooks_of(PATHS["run"])
        assert log[0] == "hook on_turn_start"
        assert log[-2:] == ["hook on_chat_done", "hook on_chat_response"]
        assert "hook before_tool_call" in log

    @pytest.mark.parametrize("path", CONTINUATIONS)
    async def test_m001_a_continuation_differs_only_in_the_user_message(self, path: str):
        log = await hooks_of(CONTINUATIONS[path], before=1)
        plain = await hooks_of(PATHS["run"])
        assert log == [line for line in plain if line != "hook on_message user"]

    async def test_m045_continue_last_turn_adds_no_user_message(self):
        async with running(Assistant, "one", " and more") as stage:
            await stage.agent.run("hi")
            result = await stage.agent.continue_last_turn()
            assert (result.status, result.continuation) == ("completed", True)
            assert [m["role"] for m in await stage.messages()] == ["user", "assistant"]

    @pytest.mark.parametrize("path", [*PATHS, *CONTINUATIONS])
    async def test_ac42_a_failing_before_turn_is_told_once_with_its_stage(self, path: str):
        start = {**PATHS, **CONTINUATIONS}[path]
        async with running(Assistant, "before") as stage:
            await stage.agent.run("before")
            client = await stage.connect()
            told: list[Any] = []
            ended = asyncio.Event()
            stage.agent.add_hook("before_turn", fail)
            stage.agent.add_hook("on_chat_error", told.append)
            stage.agent.add_hook("on_chat_response", lambda ctx: (told.append(ctx), ended.set()))
            await asyncio.gather(start(stage.agent, client), return_exceptions=True)
            await ended.wait()
            error, response = told
            assert (error.stage, response.status) == ("turn", "error")
            assert error.request_id == response.request_id != ""


class TestRunTurn:
    @pytest.mark.parametrize(
        "options",
        [
            {"mode": "later", "input": "x"},
            {},
            {"input": "x", "continuation": True},
            {"mode": "submit", "continuation": True},
            {"mode": "stream", "continuation": True, "callback": Callback()},
            {"mode": "submit"},
            {"mode": "stream", "callback": Callback()},
            {"mode": "stream", "input": "x"},
            {"mode": "submit", "input": lambda messages: messages},
            {"input": "x", "callback": Callback()},
            {"input": "x", "idempotency_key": "k"},
            {"input": "x", "colour": "red"},
        ],
    )
    async def test_ac55_what_it_cannot_mean_is_a_type_error(self, options: dict[str, Any]):
        async with running(Assistant) as stage:
            with pytest.raises(TypeError, match="run_turn"):
                await stage.agent.run_turn(**options)
            assert stage.events == []

    @pytest.mark.parametrize("nothing", ["", []])
    async def test_ac56_nothing_to_answer_is_skipped_without_events(self, nothing: Any):
        async with running(Assistant) as stage:
            result = await stage.agent.run_turn(input=nothing)
            assert (result.status, result.request_id, result.continuation) == ("skipped", "", False)
            callback = Callback()
            outcome = await stage.agent.run_turn(mode="stream", input=nothing, callback=callback)
            assert (outcome.status, callback.log) == ("skipped", ["on_start", "on_done"])
            assert stage.events == []

    async def test_2_26_a_function_that_returns_nothing_still_asks_the_model(self):
        async with running(Assistant, "one", "two") as stage:
            await stage.agent.run("hi")
            result = await stage.agent.run_turn(input=lambda _: [])
            assert result.text == "two"

    async def test_ac57_the_same_key_twice_is_one_turn(self):
        async with running(Assistant, "one") as stage:
            first = await stage.agent.run_turn(mode="submit", input="hi", idempotency_key="k")
            again = await stage.agent.submit_messages("hi", idempotency_key="k")
            assert (first.accepted, again.accepted) == (True, False)
            assert first.request_id == again.request_id
            assert await stage.agent.wait_until_stable()
            assert len(stage.fields("chat:turn:start")) == 1

    async def test_ac57_a_submission_cancelled_before_its_slot_stores_nothing(self):
        gate = pause()
        async with running(Assistant, [gate, "one"]) as stage:
            waiting = asyncio.ensure_future(stage.agent.run("hi"))
            await gate.reached()
            later = await stage.agent.submit_messages("never")
            await stage.agent.cancel_chat(later.request_id)
            gate.open()
            await waiting
            await stage.agent.wait_until_stable()
            assert [text_of(m) for m in await stage.messages()] == ["hi", "one"]

    async def test_metadata_of_the_caller_reaches_the_hooks(self):
        async with running(Assistant, "one") as stage:
            seen: list[Any] = []
            stage.agent.add_hook("before_turn", lambda ctx: seen.append(ctx.turn_metadata))
            await stage.agent.run_turn(input="hi", metadata={"a": 1})
            assert dict(seen[0]) == {"a": 1}


class TestNesting:
    @pytest.mark.parametrize(
        "path",
        [
            *("run", "stream", "save_messages", "run_turn wait", "run_turn stream"),
            *("chat", "chat with a callback", "chat_stream", *CONTINUATIONS),
        ],
    )
    async def test_ac50_a_blocking_call_inside_a_turn_is_refused(self, path: str):
        async with running(Assistant, "before", [call("a")], "two") as stage:
            await stage.agent.run("before")
            start = {**PATHS, **CONTINUATIONS}[path]
            client = await stage.connect()
            seen: list[BaseException] = []
            stage.agent.add_hook("on_tool_error", lambda ctx: seen.append(ctx.error))
            stage.agent.body = lambda: start(stage.agent, client)
            await stage.agent.run("hi")
            assert isinstance(seen[0], NestedTurnError)

    async def test_ac50_submitting_inside_a_turn_runs_afterwards(self):
        async with running(Assistant, [call("a")], "one", "two") as stage:
            stage.agent.body = lambda: submit_and_add(stage.agent)
            await stage.agent.run("hi")
            await stage.agent.wait_until_stable()
            assert [text_of(m) for m in await stage.messages()][-2:] == ["more", "two"]
            assert await stage.agent.session.get_message("n1") is not None

    async def test_ac51_a_task_of_a_tool_may_wait_once_the_turn_has_ended(self):
        async with running(Assistant, [call("a")], "one", "two") as stage:
            ended, tasks = asyncio.Event(), list[asyncio.Future[Any]]()

            async def later() -> Any:
                await ended.wait()
                return await stage.agent.chat("more")

            async def body() -> str:
                tasks.append(asyncio.ensure_future(later()))
                return "a"

            stage.agent.body = body
            await stage.agent.run("hi")
            ended.set()
            assert (await tasks[0]).content == "two"

    async def test_ac49_a_chain_of_turns_ends(self):
        async with running(Assistant, *["again"] * 30) as stage:
            problems: list[BaseException] = []
            over = asyncio.Event()

            async def chain(ctx: Any) -> None:
                try:
                    await ctx.agent.submit("more")
                except TurnChainError as error:
                    problems.append(error)
                    over.set()

            stage.agent.add_hook("on_chat_response", chain)
            await stage.agent.run("hi")
            await over.wait()
            assert len(stage.fields("chat:turn:start")) == 26  # the first, and 25 it led to


async def submit_and_add(agent: Assistant) -> str:
    await agent.add_messages([user_message("n1", "note")])
    await agent.submit("more")
    return "a"


class TestStability:
    async def test_3_10_an_idle_agent_is_stable_at_once(self):
        async with running(Assistant) as stage:
            assert await stage.agent.wait_until_stable(timeout=5)

    async def test_3_10_it_waits_for_the_turn_and_the_answer_of_a_client(self):
        async with running(Assistant, [call("ask_page", id="c")], "thanks") as stage:
            await stage.agent.chat("hi", client_tools=[SCHEMA])
            stable = asyncio.ensure_future(stage.agent.wait_until_stable())
            await stage.agent.add_tool_result("c", output="yes")
            assert await stable
            assert text_of(await stage.answer()) == "thanks"

    async def test_3_10_a_call_nobody_answers_runs_into_the_timeout(self):
        async with running(Assistant, [call("ask_page", id="c")]) as stage:
            await stage.agent.chat("hi", client_tools=[SCHEMA])
            assert not await stage.agent.wait_until_stable(timeout=0)
