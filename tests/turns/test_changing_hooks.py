"""Hooks that change what the model said and what tools gave (spec/02 §5.5-5.9; AC15-AC21, AC67)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.turns.hooked import Tools, raiser
from tests.turns.support import Client, Stage, folded, part_of, running
from thinkwell import Allow, Block
from thinkwell.hooks.answers import Fail
from thinkwell.hooks.contexts import ModelResponse, ResponseCall
from thinkwell.messages.message import text_of
from thinkwell.models.base import ModelRequest
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call


class TestInsteadOfTheModel:
    async def test_ac67_a_response_of_before_step_is_streamed_and_seen_by_on_response(self):
        seen: list[Any] = []
        async with running(Tools) as stage:
            client = await stage.connect()
            stage.agent.add_hook("pre_request", lambda _: {"response": {"content": "cached"}})
            stage.agent.add_hook("pre_request", lambda _: seen.append("too late"))
            stage.agent.add_hook("on_response", lambda ctx: seen.append(ctx.response.content))
            await client.ask("hi")
            await client.until_end()
            assert (stage.model.requests, seen) == ([], ["cached"])
            deltas = [c["delta"] for c in client.chunks() if c["type"] == "text-delta"]
            assert "".join(deltas) == text_of(await stage.answer()) == "cached"

    @pytest.mark.parametrize("nothing", [None, {}])
    async def test_12_2_an_empty_response_is_no_answer(self, nothing: Any):
        async with running(Tools, "from the model") as stage:
            stage.agent.add_hook("before_step", lambda _: {"response": nothing})
            assert (await stage.agent.run("hi")).text == "from the model"

    async def test_5_5_4_calls_of_a_supplied_response_run_like_those_of_a_model(self):
        asked = ModelResponse(calls=(ResponseCall(id="c", name="a", arguments='{"n":3}'),))

        def answer(ctx: Any) -> Any:
            return {"response": asked} if ctx.step_number == 0 else None

        async with running(Tools, "done") as stage:
            stage.agent.add_hook("before_step", answer)
            result = await stage.agent.run("hi")
            assert (result.text, part_of(await stage.answer(), "c")["output"]) == (
                "done",
                "secret 3",
            )

    async def test_13_9_a_replaced_request_is_sent_and_later_hooks_patch_it(self):
        seen: list[Any] = []

        def replaced(ctx: Any) -> Any:
            request = ModelRequest(messages=ctx.messages, system="Mine.", temperature=0.0)
            return {"request": request}

        async with running(Tools, "ok") as stage:
            stage.agent.add_hook("before_step", replaced)
            stage.agent.add_hook("before_step", lambda ctx: seen.append(ctx.system))
            stage.agent.add_hook("before_step", lambda _: {"top_p": 0.5})
            await stage.agent.run("hi")
            (request,) = stage.model.requests
            assert (request.system, request.temperature, request.top_p) == ("Mine.", 0.0, 0.5)
            assert (request.tools, seen) == ((), ["Mine."])


class TestOnResponse:
    async def rewritten(self, response: Any, *steps: Any) -> tuple[Stage[Any], Client, Any]:
        async with running(Tools, *steps) as stage:
            client = await stage.connect()
            stage.agent.add_hook("on_response", lambda _: {"response": response})
            await client.ask("hi")
            await client.until_end()
            return stage, client, await stage.answer()

    async def test_5_7_a_changed_text_reaches_clients_and_storage_alike(self):
        stage, client, stored = await self.rewritten({"content": "clean"}, "dirty words")
        assert [c["type"] for c in client.chunks()].count("reset-step") == 1
        assert folded(client.chunks())["parts"] == stored["parts"]
        assert text_of(stored) == "clean"
        assert stage.model.requests

    async def test_5_7_a_removed_call_does_not_run(self):
        stage, client, stored = await self.rewritten(
            {"content": "no tools", "calls": []}, [call("a")]
        )
        assert stage.agent.ran == []
        assert [part["type"] for part in stored["parts"]] == ["step-start", "text"]
        assert folded(client.chunks())["parts"] == stored["parts"]

    async def test_5_7_an_added_call_is_checked_and_runs(self):
        added = ResponseCall(id="c", name="a", arguments='{"n":"x"}')

        def once(ctx: Any) -> Any:
            return {"response": ModelResponse(calls=(added,))} if ctx.iteration == 0 else None

        async with running(Tools, "words", "done") as stage:
            stage.agent.add_hook("on_response", once)
            result = await stage.agent.run("hi")
            part = part_of(await stage.answer(), "c")
            assert (part["state"], stage.agent.ran) == ("output-error", [])
            assert (result.text, len(stage.model.requests)) == ("done", 2)

    async def test_5_7_an_unchanged_response_sends_nothing_twice(self):
        async with running(Tools, "as it was") as stage:
            client = await stage.connect()
            stage.agent.add_hook("on_response", lambda ctx: {"response": ctx.response})
            await client.ask("hi")
            await client.until_end()
            assert "reset-step" not in [c["type"] for c in client.chunks()]

    async def test_5_7_a_rewritten_step_keeps_its_usage(self):
        async with running(Tools, "one two") as stage:
            stage.agent.add_hook("on_response", lambda _: {"response": {"content": "other"}})
            result = await stage.agent.run("hi")
            assert result.usage.output_tokens

    async def test_12_2_every_hook_is_asked_and_the_last_word_counts(self):
        async with running(Tools, "a") as stage:
            for letter in "bc":
                stage.agent.add_hook("on_response", appending(letter))
            assert (await stage.agent.run("hi")).text == "abc"

    async def test_13_3_a_raise_fails_the_turn_at_stage_step(self):
        async with running(Tools, "x") as stage:
            stage.agent.add_hook("on_response", raiser(RuntimeError("no")))
            assert (await stage.agent.run("hi")).status == "error"
            assert stage.fields("chat:request:failed")[0]["stage"] == "step"


def appending(letter: str) -> Any:
    """A hook that puts a letter behind the text."""
    return lambda ctx: {"response": {"content": f"{ctx.response.content}{letter}"}}


class TestToolHooks:
    @pytest.mark.parametrize(
        ("answer", "state", "shown"),
        [
            ({"result": None}, "output-available", None),
            ({"result": {"x": 1}}, "output-available", {"x": 1}),
            ({"error": "refused"}, "output-error", "refused"),
            ({"error": ValueError("bad"), "result": 1}, "output-error", "bad"),
            ({"call": {"arguments": {"n": 5}}}, "output-available", "secret 5"),
            ({"action": "block", "reason": "no"}, "output-available", "no"),
            ({"action": "substitute", "output": 7}, "output-available", 7),
            ({"action": "allow", "input": {"n": 6}}, "output-available", "secret 6"),
            ({"action": "fail", "error": "broken"}, "output-error", "broken"),
            (Fail("typed"), "output-error", "typed"),
        ],
    )
    async def test_5_8_3_ac17_ac18_every_form_of_an_answer(
        self, answer: Any, state: str, shown: Any
    ):
        async with running(Tools, [call("a")], "ok") as stage:
            stage.agent.add_hook("pre_tool_call", lambda _: answer)
            assert (await stage.agent.run("hi")).status == "completed"
            part = part_of(await stage.answer())
            assert (part["state"], part.get("output", part.get("errorText"))) == (state, shown)

    async def test_ac15_ac16_the_first_refusal_ends_the_chain_and_allow_feeds_the_next(self):
        seen: list[Any] = []
        async with running(Tools, [call("a")], "ok") as stage:
            stage.agent.add_hook("before_tool_call", lambda _: Allow({"n": 2}))
            stage.agent.add_hook("before_tool_call", lambda ctx: seen.append(dict(ctx.input)))
            stage.agent.add_hook("before_tool_call", lambda _: Block("no"))
            stage.agent.add_hook("before_tool_call", lambda _: seen.append("too late"))
            await stage.agent.run("hi")
            assert (seen, stage.agent.ran) == ([{"n": 2}], [])

    async def test_ac20_every_result_hook_runs_and_sees_what_the_one_before_made(self):
        async with running(Tools, [call("a")], "ok") as stage:
            stage.agent.add_hook("on_tool_result", lambda ctx: {"result": [ctx.result]})
            stage.agent.add_hook("on_tool_call_result", lambda ctx: {"result": [ctx.result]})
            await stage.agent.run("hi")
            assert part_of(await stage.answer())["output"] == [["secret 0"]]

    async def test_ac21_an_error_hook_may_turn_a_failure_into_a_result(self):
        seen: list[Any] = []
        async with running(Tools, [call("fails")], "ok") as stage:
            stage.agent.add_hook("on_tool_error", lambda _: {"result": 1})
            stage.agent.add_hook("after_tool_call", lambda ctx: seen.append(ctx.success))
            await stage.agent.run("hi")
            assert (part_of(await stage.answer())["output"], seen) == (1, [True])

    async def test_5_9_an_error_hook_may_replace_the_error(self):
        async with running(Tools, [call("fails")], "ok") as stage:
            stage.agent.add_hook("on_tool_error", lambda _: {"error": "try later"})
            await stage.agent.run("hi")
            assert part_of(await stage.answer())["errorText"] == "try later"

    @pytest.mark.parametrize("redact", [raiser(RuntimeError("x")), lambda _: {"result": "***"}])
    async def test_ac19_a_raw_result_is_nowhere_after_redaction(self, redact: Any, tmp_path: Path):
        file = tmp_path / "x.db"
        steps = [call("a", {"n": 42})], "ok"
        async with running(Tools, *steps, store=SqliteStore(file)) as stage:
            client = await stage.connect()
            stage.agent.add_hook("on_tool_result", redact)
            await client.ask("hi")
            await client.until_end()
            seen = f"{client.frames} {stage.model.requests} {await stage.messages()}"
        with closing(sqlite3.connect(file)) as link:
            dump = "".join(link.iterdump())
        assert ("secret 42" in seen, "call-1" in seen) == (False, True)
        assert ("secret 42" in dump, "call-1" in dump) == (False, True)
