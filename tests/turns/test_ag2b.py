"""The other programming style: `chat`, events, inline agents, the flat history (spec/02 §2.23,
§7.15, §12.8-12.17; AC79, AC80, AC99, AC100).
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.turns.support import Stage, running
from thinkwell import AbortController, Scope, Think, create_agent, tool
from thinkwell.agent.agent_events import AgentEvent, ChatDone, ContentDelta, ToolCallDelta
from thinkwell.core import json
from thinkwell.core.errors import (
    AbortedError,
    ConfigurationError,
    HostClosedError,
    MaxStepsError,
    StoreLockedError,
    ToolDefinitionError,
    TurnActiveError,
)
from thinkwell.features import Feature, Kit
from thinkwell.host.host import Host
from thinkwell.host.inline import InlineAgent
from thinkwell.messages.message import text_of
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.testing import ScriptedModel, call, pause, reasoning, text
from thinkwell.tools.tool import client_tool


class Assistant(Think):
    time_limits = {"grace": 0.0}

    @tool
    async def add(self, a: int = 1) -> int:
        """Adds one."""
        return a + 1

    @tool
    async def forget(self) -> str:
        """Tries to forget everything."""
        await self.history.reset()
        return "forgotten"


def add(a: int) -> int:
    """Adds one."""
    return a + 1


class Notes(Feature):
    name = "notes"

    async def on_boot(self, kit: Kit) -> None:
        self.shouted = asyncio.Event()

    def tools(self, turn: Any) -> dict[str, Any]:
        return {"note": self.note}

    def jobs(self) -> dict[str, Any]:
        return {"shout": self.shout}

    async def note(self, text: str) -> str:
        """Keeps a note."""
        await self.kit.storage.set("note", text)
        return "kept"

    async def shout(self, payload: Any, ctx: Any) -> None:
        await self.kit.storage.set("note", (await self.kit.storage.get("note")).upper())
        self.shouted.set()


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


async def events_of(stage: Stage[Assistant], message: str = "hi") -> list[AgentEvent]:
    return [event async for event in stage.agent.chat_stream(message)]


def types(events: list[AgentEvent]) -> list[str]:
    return [event.type for event in events]


ONE_TOOL = [reasoning("hm"), text("let me see"), call("add", {"a": 1})], "it is two"


class TestChat:
    async def test_2_23_it_returns_the_last_steps_answer(self):
        async with running(Assistant, [call("add")], [reasoning("so"), text("two")]) as stage:
            response = await stage.agent.chat("hi")
            assert (response.content, response.reasoning) == ("two", "so")
            assert response.finish_reason == "stop"

    async def test_2_23_the_original_error_is_raised(self):
        async with running(Assistant, lambda _: 1 / 0) as stage:
            with pytest.raises(ZeroDivisionError):
                await stage.agent.chat("hi")

    async def test_2_23_a_stop_is_raised_with_its_reason(self):
        gate, stop = pause(), AbortController()
        async with running(Assistant, [gate]) as stage:
            chat = asyncio.ensure_future(stage.agent.chat("hi", signal=stop.signal))
            await gate.reached()
            stop.abort("enough")
            with pytest.raises(AbortedError) as caught:
                await chat
            assert caught.value.reason == "enough"

    async def test_a_turn_cleared_away_before_it_ran_is_a_stop(self):
        gate = pause()
        async with running(Assistant, [gate]) as stage:
            first = asyncio.ensure_future(stage.agent.run("hi"))
            await gate.reached()
            chat = asyncio.ensure_future(stage.agent.chat("never"))
            stage.log.clear()
            await stage.log.until("accepted")
            await stage.agent.clear_messages()
            with pytest.raises(AbortedError, match="cleared"):
                await chat
            assert (await first).status == "skipped"

    async def test_cancelling_the_task_that_waits_stops_the_turn(self):
        gate = pause()
        async with running(Assistant, [gate]) as stage:
            chat = asyncio.ensure_future(stage.agent.chat("hi"))
            await gate.reached()
            chat.cancel()
            await stage.log.until("settled aborted")

    async def test_2_20_an_empty_text_still_asks_the_model(self):
        async with running(Assistant, "one", "two") as stage:
            await stage.agent.chat("hi")
            assert (await stage.agent.chat("")).content == "two"

    async def test_ac100_two_at_the_same_time_queue(self):
        async with running(Assistant, "one", "two") as stage:
            await asyncio.gather(stage.agent.chat("a"), stage.agent.chat("b"))
            roles = [message.role for message in await stage.agent.history.get_snapshot()]
            assert roles == ["user", "assistant", "user", "assistant"]
            assert [text_of(m) for m in await stage.messages()] == ["a", "one", "b", "two"]


class TestEvents:
    async def test_ac79_they_come_in_the_order_of_one_turn(self):
        async with running(Assistant, *ONE_TOOL) as stage:
            assert types(await events_of(stage)) == [
                *("chat_start", "reasoning_delta", "reasoning_end"),
                *["content_delta"] * 3,
                *("tool_call_delta", "content_end", "tool_call_start", "tool_call_result"),
                *["content_delta"] * 3,
                *("content_end", "chat_done"),
            ]

    async def test_7_15_each_event_follows_its_hook(self):
        async with running(Assistant, [call("add")], "two") as stage:
            log: list[str] = []
            for event in ("on_chat_start", "pre_tool_call", "on_tool_call_result", "on_chat_done"):
                stage.agent.add_hook(event, lambda _, event=event: log.append(event))
            await stage.agent.chat("hi", on_event=lambda event: log.append(event.type))
            told = [line for line in log if line not in ("content_delta", "content_end")]
            assert told == [
                *("on_chat_start", "chat_start", "tool_call_delta", "tool_call_start"),
                *("pre_tool_call", "on_tool_call_result", "tool_call_result"),
                *("on_chat_done", "chat_done"),
            ]

    async def test_7_15_chat_and_chat_stream_tell_the_same(self):
        told: list[AgentEvent] = []
        async with running(Assistant, *ONE_TOOL) as stage:
            await stage.agent.chat("hi", on_event=told.append)
        async with running(Assistant, *ONE_TOOL) as stage:
            assert await events_of(stage) == told

    async def test_12_11_the_first_piece_of_a_call_names_it(self):
        async with running(Assistant, [call("add", ['{"a":', "", "1}"]), call("add")]) as stage:
            stage.agent.max_steps = 1
            pieces = [e for e in await events_of(stage) if isinstance(e, ToolCallDelta)]
            assert [(p.index, p.name, p.arguments_delta) for p in pieces] == [
                *((0, "add", '{"a":'), (0, None, "1}"), (1, "add", "{}")),
            ]

    async def test_12_11_a_call_that_cannot_be_read_starts_and_fails(self):
        async with running(Assistant, [call("nothing")], "sorry") as stage:
            assert types(await events_of(stage))[1:4] == [
                *("content_end", "tool_call_start", "tool_call_error"),
            ]

    async def test_a_rewritten_answer_is_in_the_response_not_in_the_deltas(self):
        async with running(Assistant, "raw") as stage:
            stage.agent.add_hook("on_response", lambda _: {"response": {"content": "fine"}})
            events = await events_of(stage)
            assert [e.delta for e in events if isinstance(e, ContentDelta)] == ["raw"]
            assert isinstance(events[-1], ChatDone)
            assert events[-1].response.content == "fine"

    async def test_7_15_a_failure_is_told_last_and_then_raised(self):
        told: list[AgentEvent] = []
        async with running(Assistant, lambda _: 1 / 0) as stage:
            with pytest.raises(ZeroDivisionError):
                await stage.agent.chat("hi", on_event=told.append)
            assert types(told) == ["chat_start", "chat_error"]

    async def test_12_11_a_stop_is_told_last_and_then_raised(self):
        gate, stop, told = pause(), AbortController(), list[AgentEvent]()
        async with running(Assistant, [gate]) as stage:
            waiting = stage.agent.chat("hi", signal=stop.signal, on_event=told.append)
            chat = asyncio.ensure_future(waiting)
            await gate.reached()
            stop.abort("enough")
            with pytest.raises(AbortedError):
                await chat
            assert types(told) == ["chat_start", "chat_abort"]

    async def test_ac80_leaving_the_stream_stops_the_turn_and_keeps_the_partial(self):
        gate = pause()
        async with running(Assistant, [text("one"), gate]) as stage:
            async with aclosing(stage.agent.chat_stream("hi")) as events:
                async for event in events:
                    if isinstance(event, ContentDelta):
                        break
            await stage.log.until("settled aborted")
            assert text_of(await stage.answer()) == "one"

    async def test_what_on_event_raises_stops_the_turn(self):
        async with running(Assistant, [text("one"), pause()]) as stage:
            with pytest.raises(ZeroDivisionError):
                await stage.agent.chat("hi", on_event=lambda _: 1 // 0)
            await stage.log.until("settled aborted")

    async def test_12_10_as_json_their_type_has_the_prefix(self):
        assert json.loads(json.dumps(ContentDelta(delta="x"))) == {
            "type": "agent_content_delta",
            "delta": "x",
        }


class TestInlineAgents:
    async def test_12_14_an_agent_without_class_and_server_answers(self):
        async with inline([call("add", {"a": 1})], "two", tools=[add]) as agent:
            assert (await agent.chat("hi")).content == "two"
            assert (await agent.run("more")).status == "error"  # the script is over

    async def test_12_14_the_cap_of_steps_is_an_error_for_the_caller(self):
        async with inline(*[[call("add", {"a": 1})]] * 2, tools=[add], max_steps=2) as agent:
            with pytest.raises(MaxStepsError) as caught:
                await agent.chat("hi")
            assert caught.value.steps == 2

    async def test_12_17_scopes_given_at_the_start_fire_no_hooks(self):
        told: list[str] = []
        agent = inline("one", scopes=[Scope("first")])
        agent.add_hook("on_scope_register", lambda ctx: told.append(ctx.scope.name))
        agent.scopes.register(Scope("second"))
        async with agent:
            await agent.chat("hi")
            assert told == ["second"]
            assert [s.name for s in agent.scopes.get_snapshot()] == ["first", "second"]

    async def test_hooks_scopes_and_plugins_work_before_the_first_use(self):
        seen: list[str] = []

        def plugin(agent: InlineAgent) -> None:
            agent.add_hook("on_message", lambda ctx: seen.append(ctx.message.role))
            agent.scopes.register(Scope("page", context="the page"))

        agent = inline("one")
        await agent.use(plugin)
        async with agent:
            told = [event.type async for event in agent.chat_stream("hi")]
            assert (seen, told[-1]) == (["user", "assistant"], "chat_done")

    def test_a_tool_of_a_scope_may_not_hide_one_of_the_agent(self):
        with pytest.raises(ToolDefinitionError, match="add"):
            inline(tools=[add], scopes=[Scope("page", tools=[add])])

    def test_two_tools_with_one_name_are_refused(self):
        with pytest.raises(ToolDefinitionError, match="two tools"):
            inline(tools=[add, add])

    def test_an_unknown_setting_is_refused(self):
        with pytest.raises(TypeError, match="max_step"):
            inline(max_step=3)

    async def test_a_closed_agent_stays_closed(self):
        agent = inline("one")
        await agent.chat("hi")
        await agent.close()
        await agent.close()
        with pytest.raises(HostClosedError):
            await agent.chat("more")

    async def test_there_is_no_history_before_the_start(self):
        with pytest.raises(ConfigurationError, match="async with"):
            inline().history  # noqa: B018

    async def test_a_call_that_needs_a_person_waits_for_the_answer(self):
        steps = [call("pay", {"amount": 3}, id="c1")], "paid"
        async with inline(*steps, tools=[pay]) as agent:
            assert (await agent.run("pay")).stop_reason == "approval"
            assert await agent.has_pending_interaction()
            await agent.respond_to_approval("c1", approved=True)
            await agent.wait_until_stable(timeout=5)
            assert text_of((await agent.get_messages())[-1]) == "paid"

    async def test_a_client_tool_is_answered_later(self):
        asks = client_tool("where", "Where the user is.", None)
        async with inline([call("where", id="c1")], "in Rome", tools=[asks]) as agent:
            assert (await agent.run("where am I?")).stop_reason == "client_tool"
            await agent.add_tool_result("c1", output="Rome")
            await agent.wait_until_stable(timeout=5)
            assert text_of((await agent.get_messages())[-1]) == "in Rome"

    async def test_every_verb_of_think_is_there_and_starts_it(self):
        agent = inline("one", "two")
        chunks = [chunk["type"] async for chunk in agent.stream("hi")]
        assert chunks[-1] == "finish"
        submission = await agent.submit("more")
        await agent.wait_until_stable()
        assert (await agent.get_turn(submission.request_id)).status == "completed"
        await agent.close()

    async def test_a_feature_brings_its_tool_its_namespace_and_its_job(self):
        async with inline([call("note", {"text": "milk"})], "noted", features=[Notes()]) as agent:
            await agent.chat("milk")
            notes: Notes = agent.notes
            assert await notes.kit.storage.get("note") == "milk"
            await notes.kit.enqueue("shout")
            await notes.shouted.wait()
            assert await notes.kit.storage.get("note") == "MILK"

    async def test_a_member_that_does_not_exist_is_no_member(self):
        assert not hasattr(inline(), "cha")

    async def test_it_keeps_its_hooks_however_long_nobody_uses_it(self):
        seen: list[str] = []
        async with inline("one", "two") as agent:
            agent.add_hook("on_turn_start", lambda ctx: seen.append(ctx.request_id))
            await agent.chat("hi")
            vars(host_of(agent))["_idle_timeout"] = 0.0
            await host_of(agent).put_to_sleep()
            await agent.chat("more")
            assert len(seen) == 2

    async def test_unfinished_work_goes_on_but_not_that_of_another_name(self, tmp_path: Any):
        """Another name may have been made with other tools and hooks."""
        store = f"sqlite:///{tmp_path}/x.db"
        for name in ("a", "b"):
            cut = inline([pause()], store=store, name=name)
            await cut.submit("hi")
            await host_of(cut).stop(0.0)
        async with inline("one", store=store, name="a") as agent:
            await agent.wait_until_stable(timeout=5)
            assert text_of((await agent.get_messages())[-1]) == "one"
        async with inline("two", store=store, name="b") as agent:
            await agent.wait_until_stable(timeout=5)
            assert text_of((await agent.get_messages())[-1]) == "two"

    async def test_a_start_that_fails_leaves_nothing_open_and_can_be_tried_again(
        self, tmp_path: Any
    ):
        store = f"sqlite:///{tmp_path}/x.db"
        async with inline("one", store=store) as first:
            second = inline("two", store=store)
            with pytest.raises(StoreLockedError):
                await second.chat("hi")
            await first.chat("hi")
        assert (await second.chat("more")).content == "two"
        await second.close()

    async def test_a_store_on_disk_remembers(self, tmp_path: Any):
        store = f"sqlite:///{tmp_path}/x.db"
        async with inline("one", store=store) as agent:
            await agent.chat("hi")
        async with inline(store=store) as agent:
            assert len(await agent.history.get_snapshot()) == 2


def inline(*steps: Any, **options: Any) -> InlineAgent:
    return create_agent(model=ScriptedModel(steps), **options)


def host_of(agent: InlineAgent) -> Host:
    return vars(agent)["_host"]


class TestHistory:
    async def test_12_9_it_is_flat_and_the_same_object_until_it_changes(self):
        async with running(Assistant, [call("add")], "two", "three") as stage:
            history = stage.agent.history
            await stage.agent.chat("hi")
            first = await history.get_snapshot()
            assert [m.role for m in first] == ["user", "assistant", "tool", "assistant"]
            assert await history.get_snapshot() is first
            await stage.agent.chat("more")
            assert (await history.get_snapshot())[:4] == first

    async def test_12_9_finished_steps_of_the_running_turn_are_in_it(self):
        gate = pause()
        async with running(Assistant, [call("add")], [gate, "two"]) as stage:
            chat = asyncio.ensure_future(stage.agent.chat("hi"))
            await gate.reached()
            roles = [m.role for m in await stage.agent.history.get_snapshot()]
            assert roles == ["user", "assistant", "tool"]
            gate.open()
            await chat

    async def test_ac99_reset_inside_a_turn_is_a_tool_error(self):
        async with running(Assistant, [call("forget")], "sorry") as stage:
            seen: list[BaseException] = []
            stage.agent.add_hook("on_tool_error", lambda ctx: seen.append(ctx.error))
            await stage.agent.chat("hi")
            assert isinstance(seen[0], TurnActiveError)
            assert len(await stage.messages()) == 2

    async def test_ac99_between_turns_it_clears_and_notifies_once(self):
        async with running(Assistant, "one") as stage:
            history, told = stage.agent.history, list[int]()
            await stage.agent.chat("hi")
            dispose = history.subscribe(lambda: told.append(1))
            await history.reset()
            assert (await history.get_snapshot(), told) == ((), [1])
            dispose()
            await stage.agent.add_messages([])
            assert told == [1]

    async def test_12_9_restore_replaces_everything_and_notifies_once(self):
        async with running(Assistant, [call("add")], "two", "three") as stage:
            history, told = stage.agent.history, list[int]()
            await stage.agent.chat("hi")
            kept = await history.get_snapshot()
            await history.reset()
            history.subscribe(lambda: told.append(1))
            await history.restore(kept)
            assert (await history.get_snapshot(), told) == (kept, [1])
            await stage.agent.chat("more")
            assert stage.model.requests[-1].messages[: len(kept)] == kept

    async def test_12_9_restore_while_a_turn_runs_is_refused(self):
        gate = pause()
        async with running(Assistant, [gate, "one"]) as stage:
            chat = asyncio.ensure_future(stage.agent.chat("hi"))
            await gate.reached()
            with pytest.raises(TurnActiveError):
                await stage.agent.history.restore([UserMessage((TextContent("x"),))])
            gate.open()
            await chat
