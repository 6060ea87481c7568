"""The journal is whole: every model request comes back from it (DESIGN §5, §11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.turns.support import Stage, running
from thinkwell import Block, StepConfig, Substitute, Think, TurnConfig, tool
from thinkwell.core.errors import ModelError, StoreError
from thinkwell.hooks.answers import Allow
from thinkwell.journal.blobs import read_blob
from thinkwell.journal.events import (
    AttemptBegun,
    CallClaimed,
    CallSettled,
    HookDecided,
    JournalEvent,
    ModelAsked,
    ModelEnded,
    ModelFailed,
    read_events,
)
from thinkwell.journal.turns import find_turn
from thinkwell.messages.message import user_message
from thinkwell.messages.model_messages import (
    TextContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import ModelRequest
from thinkwell.store.base import Store
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, error, pause, reasoning, text
from thinkwell.turn.recorded_requests import journal_of, recorded_requests
from thinkwell.turn.run import journal_events
from thinkwell.turn.run.request_record import REDACTED

AGENT = "clerk/x"


class Clerk(Think, name="clerk"):
    system_prompt = "You file things."
    time_limits = {"grace": 0}

    @tool(effect="pure")
    async def look(self, what: str) -> dict[str, Any]:
        """Looks something up."""
        return {"found": what, "pages": [1, 2]}


async def requests_of(store: Store, turn: str, agent: str = AGENT) -> list[ModelRequest]:
    record = await find_turn(store, agent, turn)
    assert record is not None
    return [recorded.request for recorded in await recorded_requests(store, record)]


async def events_of(store: Store, turn: str, agent: str = AGENT) -> list[JournalEvent]:
    record = await find_turn(store, agent, turn)
    assert record is not None
    journal = await journal_of(store, record)
    assert journal is not None
    return read_events(journal)


async def asked(stage: Stage[Any], question: str, turn: str) -> None:
    client = await stage.connect(f"tab-{turn}")
    await client.ask(question, turn)
    await client.until_end(turn)


class TestEveryRequestComesBack:
    async def test_of_a_turn_with_tools_in_a_long_conversation(self):
        store = SqliteStore(":memory:")
        steps = [
            "one",
            "two",
            [reasoning("hm"), text("I look."), call("look", {"what": "x"})],
            "ok",
        ]
        async with running(Clerk, *steps, store=store) as stage:
            for turn in ("q1", "q2", "q3"):
                await asked(stage, "hi", turn)
            assert await requests_of(store, "q3") == stage.model.requests[2:]
            assert await requests_of(store, "q1") == stage.model.requests[:1]

    async def test_after_hooks_have_changed_it(self):
        class Changed(Clerk, name="clerk"):
            def before_turn(self, ctx: Any) -> TurnConfig:
                return TurnConfig(
                    system=f"{ctx.system} Briefly.",
                    temperature=0.25,
                    headers={"x-team": "files", "Authorization": "Bearer s3cret"},
                    provider_options={"openai": {"user": "u1"}},
                )

            def before_step(self, ctx: Any) -> StepConfig | None:
                if ctx.step_number == 0:
                    return None
                note = UserMessage((TextContent("Be quick."),))
                return StepConfig(messages=(*ctx.messages, note), tool_choice="none")

        store = SqliteStore(":memory:")
        steps = ["one", [call("look", {"what": "x"})], [call("look", {"what": "y"})], "done"]
        async with running(Changed, *steps, store=store) as stage:
            await asked(stage, "hi", "q1")
            await asked(stage, "and on", "q2")
            sent = [
                msgspec.structs.replace(r, headers={**r.headers, "Authorization": REDACTED})
                for r in stage.model.requests[1:]
            ]
            assert await requests_of(store, "q2") == sent
            record = await find_turn(store, AGENT, "q2")
            assert record is not None
            assert "s3cret" not in str(await journal_of(store, record))

    async def test_of_both_attempts_of_a_turn_that_was_cut(self, tmp_path: Path):
        class Patched(Clerk, name="clerk"):
            def before_step(self, ctx: Any) -> StepConfig:
                return StepConfig(system=f"{ctx.system} Step {ctx.step_number}.")

        store, gate = SqliteStore(tmp_path / "t.db"), pause()
        first = [[call("look", {"what": "x"}), text("")], [text("Half an"), gate]]
        async with running(Patched, "one", *first, store=store, drain=0) as stage:
            await asked(stage, "hi", "q1")
            client = await stage.connect()
            await client.ask("more", "q2")
            await gate.reached()
            before = stage.model.requests[1:]
        again = SqliteStore(tmp_path / "t.db")
        async with running(Patched, store=again) as stage:
            stage.model.add(" answer")
            await stage.agent.wait_until_stable()
            assert await requests_of(again, "q2") == [*before, *stage.model.requests]
            attempts = [e for e in await events_of(again, "q2") if isinstance(e, AttemptBegun)]
            assert [attempt.attempt for attempt in attempts] == [1, 2]

    async def test_of_both_attempts_of_a_turn_whose_model_fell_silent(self):
        class Patient(Clerk, name="clerk"):
            def before_turn(self, ctx: Any) -> TurnConfig:
                return TurnConfig(chat_stream_stall_timeout=0.05 if ctx.attempt == 0 else 0)

        store = SqliteStore(":memory:")
        async with running(Patient, [text("Half an"), pause()], " answer", store=store) as stage:
            await asked(stage, "hi", "q1")
            assert await requests_of(store, "q1") == stage.model.requests
            kinds = (AttemptBegun, ModelAsked, ModelFailed, ModelEnded)
            told = [type(e) for e in await events_of(store, "q1") if isinstance(e, kinds)]
        assert told == [*kinds[:3], AttemptBegun, ModelAsked, ModelEnded]

    async def test_of_a_continuation_although_its_answer_has_grown_since(self):
        class Careful(Clerk, name="clerk"):
            @tool(needs_approval=True)
            async def send(self, to: str) -> str:
                """Sends it."""
                return f"sent to {to}"

        store = SqliteStore(":memory:")
        steps = [
            [text("May I?"), call("send", {"to": "Bo"})],
            [call("look", {"what": "x"})],
            "Sent.",
        ]
        async with running(Careful, *steps, store=store) as stage:
            await asked(stage, "hi", "q1")
            await stage.agent.respond_to_approval("call-1", approved=True)
            await stage.agent.wait_until_stable()
            turns = await store.fetch_all(
                "list_turns",
                {"agent": AGENT, "status": None, "parked": 0, "limit": 9, "deaths": 3, "after": 0},
            )
            (continuation,) = (row["id"] for row in turns if row["id"] != "q1")
            assert await requests_of(store, continuation) == stage.model.requests[1:]
            assert await requests_of(store, "q1") == stage.model.requests[:1]

    async def test_although_messages_were_changed_later(self):
        store = SqliteStore(":memory:")
        async with running(Clerk, "one", "two", "three", store=store) as stage:
            await asked(stage, "hi", "q1")
            await asked(stage, "again", "q2")
            sent = stage.model.requests[:2]
            for words in ("changed", "changed again"):
                await stage.agent.session.update_message(user_message("u-q1", words))
            await asked(stage, "and now", "q3")
            assert [*await requests_of(store, "q1"), *await requests_of(store, "q2")] == sent
            assert await requests_of(store, "q3") == stage.model.requests[2:]

    async def test_but_not_of_messages_that_were_deleted(self):
        store = SqliteStore(":memory:")
        async with running(Clerk, "one", "two", store=store) as stage:
            await asked(stage, "hi", "q1")
            await asked(stage, "again", "q2")
            await stage.agent.session.delete_messages(["u-q1"])
            with pytest.raises(StoreError, match="no longer"):
                await requests_of(store, "q2")


class TestWhatCannotBeKept:
    async def test_a_request_that_json_cannot_hold_fails_no_turn(self):
        class Odd(Clerk, name="clerk"):
            def before_step(self, ctx: Any) -> StepConfig | None:
                odd = ToolResultContent("c0", "look", "json", object())
                note = UserMessage((TextContent("Be quick."),))
                if ctx.step_number == 0:
                    return StepConfig(messages=(note, ToolMessage((odd,)), *ctx.messages))
                return StepConfig(messages=(note, *ctx.messages[2:]))

        store = SqliteStore(":memory:")
        async with running(Odd, [call("look", {"what": "x"})], "ok", store=store) as stage:
            await asked(stage, "hi", "q1")
            (cut, whole) = await recorded(store, "q1")
            assert (cut.incomplete is None, whole.incomplete) == (False, None)
            assert [type(message) for message in whole.given] == [UserMessage]
            with pytest.raises(StoreError, match="not kept"):
                await requests_of(store, "q1")

    async def test_more_than_a_row_should_hold_is_not_written_down(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        class Long(Clerk, name="clerk"):
            def before_step(self, ctx: Any) -> StepConfig:
                return StepConfig(messages=(UserMessage((TextContent("x" * 4000),)),))

        monkeypatch.setattr(journal_events, "MOST_NOTED", 5000)
        store = SqliteStore(":memory:")
        async with running(Long, [call("look", {"what": "x"})], "ok", store=store) as stage:
            await asked(stage, "hi", "q1")
            kept = [request.incomplete is None for request in await recorded(store, "q1")]
        assert kept == [True, False]


class TestWhatElseIsKept:
    async def test_claims_results_and_what_hooks_decided(self):
        class Guarded(Clerk, name="clerk"):
            def before_tool_call(self, ctx: Any) -> Any:
                what = ctx.input["what"]
                if what == "secret":
                    return Block("not that")
                if what == "known":
                    return Substitute({"found": "known"})
                return Allow({"what": what.upper()})

        store = SqliteStore(":memory:")
        calls = [call("look", {"what": what}) for what in ("x", "secret", "known")]
        async with running(Guarded, calls, "done", store=store) as stage:
            await asked(stage, "hi", "q1")
            events = await events_of(store, "q1")
        decided = [(e.call_id, dict(e.said)) for e in events if isinstance(e, HookDecided)]
        assert sorted(decided, key=str) == [
            ("call-1", {"action": "allow", "input": {"what": "X"}}),
            ("call-2", {"action": "block", "reason": True}),
            ("call-3", {"action": "substitute", "output": True}),
        ]
        claims = [(e.call_id, e.effect) for e in events if isinstance(e, CallClaimed)]
        assert claims == [("call-1", "pure")]
        results = {e.call_id: e.outcome for e in events if isinstance(e, CallSettled)}
        assert results == {"call-1": "executed", "call-2": "blocked", "call-3": "substituted"}
        ends = [e.finish_reason for e in events if isinstance(e, ModelEnded)]
        assert ends == ["tool-calls", "stop"]

    async def test_calls_that_failed_and_were_tried_again(self):
        store = SqliteStore(":memory:")
        busy = error(ModelError("busy", provider="p", retryable=True))
        async with running(Clerk, [busy], "ok", store=store) as stage:
            await asked(stage, "hi", "q1")
            events = await events_of(store, "q1")
        assert [
            type(e) for e in events if isinstance(e, ModelAsked | ModelFailed | ModelEnded)
        ] == [
            ModelAsked,
            ModelFailed,
            ModelAsked,
            ModelEnded,
        ]


async def test_a_clear_takes_journals_bodies_and_versions_along():
    store = SqliteStore(":memory:")
    async with running(Clerk, "one", "two", store=store) as stage:
        await asked(stage, "hi", "q1")
        (request,) = await recorded(store, "q1")
        await stage.agent.session.update_message(user_message("u-q1", "changed"))
        assert request.system is not None
        assert await read_blob(store, request.system) is not None
        await stage.agent.clear_messages()
        assert await read_blob(store, request.system) is None
        named = {"agent": AGENT, "session": "", "ids": '["u-q1"]'}
        assert await store.fetch_all("message_versions", named) == []
        assert await store.fetch_all("packed_journal", {"agent": AGENT, "turn": "q1"}) == []
        await asked(stage, "hi again", "q2")
        assert await requests_of(store, "q2") == stage.model.requests[1:]


async def recorded(store: Store, turn: str) -> list[ModelAsked]:
    return [event for event in await events_of(store, turn) if isinstance(event, ModelAsked)]
