"""Recovery with a budget and a voice: what the app says about interrupted turns, and what clients
and operators hear (spec/04 §5.3-5.10, §7, §8, §17, §23 cases 23, 29-33, 37, 38, 69).
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Client, Stage, running, untyped
from thinkwell import ChatRecovery, Think, tool
from thinkwell.core import json
from thinkwell.core.errors import AgentDefinitionError, TurnError
from thinkwell.hooks import ChatRecoveryContext, RecoveryOptions
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, pause, text

TERMINAL = "We are sorry, and have been told."


class Diary(Think):
    """Writes down what it is asked."""

    time_limits = {"grace": 0.0}
    seen: list[ChatRecoveryContext]
    answer: Any = None

    async def on_start(self) -> None:
        self.seen = []

    def on_chat_recovery(self, ctx: ChatRecoveryContext) -> Any:
        self.seen.append(ctx)
        return self.answer

    @tool
    async def look(self) -> str:
        """Looks."""
        return "seen"


class Stalling(Diary):
    chat_stream_stall_timeout = 0.05


def forget_the_stop(file: Path) -> None:
    """The last life of the process ended without anybody having asked for it."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE boots SET stopped_at = NULL")


def row_of(file: Path, turn: str = "q1") -> dict[str, Any]:
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        return dict(connection.execute("SELECT * FROM turns WHERE id = ?", (turn,)).fetchone())


def call_part(message: Any, name: str) -> dict[str, Any]:
    """The call of a tool in a message."""
    return next(part for part in message["parts"] if part.get("type") == f"tool-{name}")


def kinds(stage: Stage[Any]) -> list[str]:
    """The events about recovery, by the last word of their type."""
    types = [event.type for event in stage.events if event.type.startswith("chat:recovery:")]
    return [each.rpartition(":")[2] for each in types]


async def dies_after(
    cls: type[Think], file: Path, *steps: Any, words: str = "Hel", asked: str = "hi"
) -> None:
    """A life of the process in which a turn says something and then everything ends at once."""
    store = SqliteStore(file)
    async with running(cls, [*steps, text(words), pause()], store=store, drain=0.0) as stage:
        client = await stage.connect()
        await client.ask(asked)
        await client.until(lambda frame: words in frame.get("body", ""))
    forget_the_stop(file)


async def end_of(stage: Stage[Any], turn: str = "q1") -> Any:
    return await untyped(stage)._turns.until_over(turn)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.db"


class TestTheHook:
    async def test_sees_the_partial_answer_the_kind_the_attempt_and_the_stash(self, file: Path):
        class Stashing(Diary):
            async def before_turn(self, ctx: Any) -> None:
                await self.stash({"run": ctx.attempt})

        await dies_after(Stashing, file)
        async with running(Stashing, "lo", store=SqliteStore(file)) as stage:
            await end_of(stage)
            (seen,) = stage.agent.seen
            assert (seen.recovery_kind, seen.cause, seen.attempt) == ("continue", "death", 1)
            assert (seen.partial_text, seen.stash, seen.used) == ("Hel", {"run": 0}, 1)
            assert [part["type"] for part in seen.partial_parts] == ["text"]
            assert text_of(await stage.answer()) == "Hello"
            assert kinds(stage) == ["detected", "scheduled", "attempt", "completed"]

    async def test_case_4_a_turn_that_had_said_nothing_is_tried_anew(self, file: Path):
        class Held(Diary):
            async def on_start(self) -> None:
                await super().on_start()
                self.gate = pause()

            async def before_step(self, ctx: Any) -> None:
                if not self.seen:
                    await self.gate.pass_through(ctx.abort_signal)

        async with running(Held, store=SqliteStore(file), drain=0.0) as stage:
            await (await stage.connect()).ask("hi")
            await stage.agent.gate.reached()
        forget_the_stop(file)
        async with running(Held, "hello", store=SqliteStore(file)) as stage:
            await end_of(stage)
            assert [each.recovery_kind for each in stage.agent.seen] == ["retry"]
            assert text_of(await stage.answer()) == "hello"

    async def test_hears_of_a_planned_stop_too_and_that_uses_nothing(self, file: Path):
        steps = [text("Hel"), pause()]
        async with running(Diary, steps, store=SqliteStore(file), drain=0.0) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until(lambda frame: "Hel" in frame.get("body", ""))
        async with running(Diary, "lo", store=SqliteStore(file)) as stage:
            await end_of(stage)
            assert [(each.cause, each.used) for each in stage.agent.seen] == [("stop", 0)]

    async def test_hears_of_a_stall_and_can_be_registered(self):
        async with running(Stalling, [text("Hel"), pause()], "lo") as stage:
            order: list[str] = []
            dispose = stage.agent.add_hook(
                "on_chat_recovery", lambda ctx: order.append(ctx.partial_text)
            )
            assert (await stage.agent.run("hi")).text == "Hello"
            dispose()
            assert order == ["Hel"]
            assert [each.cause for each in stage.agent.seen] == ["stall"]

    async def test_case_33_may_end_the_turn_and_keeps_what_it_had_said(self, file: Path):
        class Enough(Diary):
            answer = {"continue": False}
            chat_recovery = ChatRecovery(terminal_message=TERMINAL)

        await dies_after(Enough, file)
        async with running(Enough, store=SqliteStore(file)) as stage:
            await end_of(stage)
            assert text_of(await stage.answer()) == "Hel"
            assert kinds(stage) == ["skipped"]
            assert stage.fields("chat:recovery:skipped")[0]["reason"] == "continue_disabled"
            for number in range(2):  # every tab learns it, however late
                await learns_the_end(stage, f"tab{number}", TERMINAL)
        row = row_of(file)
        assert (row["status"], row["client_error"]) == ("error", TERMINAL)

    async def test_case_32_may_drop_the_words_of_the_step_but_no_results(self, file: Path):
        class Forgetful(Diary):
            answer = RecoveryOptions(persist=False)

        store = SqliteStore(file)
        steps = [call("look")], [text("Hel"), pause()]
        async with running(Forgetful, *steps, store=store, drain=0.0) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until(lambda frame: "Hel" in frame.get("body", ""))
        forget_the_stop(file)
        async with running(Forgetful, "anew", store=SqliteStore(file)) as stage:
            await end_of(stage)
            answer = await stage.answer()
            assert text_of(answer) == "anew"
            assert call_part(answer, "look")["output"] == "seen"
            client = await stage.connect()
            assert text_of(client.transcript()[-1]) == "anew"

    async def test_case_32_nothing_is_stored_of_words_that_nobody_wants(self, file: Path):
        class Neither(Diary):
            answer = RecoveryOptions(persist=False, continue_=False)

        await dies_after(Neither, file)
        async with running(Neither, store=SqliteStore(file)) as stage:
            await end_of(stage)
            assert [message["role"] for message in await stage.messages()] == ["user"]

    async def test_one_that_raises_or_answers_nonsense_has_no_say(self, file: Path):
        class Broken(Diary):
            answer = "whatever"

        await dies_after(Broken, file)
        async with running(Broken, "lo", store=SqliteStore(file)) as stage:
            record = await end_of(stage)
            assert record.status == "completed"
            assert "RecoveryOptions" in str(stage.fields("hook:error")[0]["error"])

    async def test_is_not_asked_about_a_turn_that_somebody_stopped(self, file: Path):
        await dies_after(Diary, file)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE turns SET cancel_requested = 'enough'")
        async with running(Diary, store=SqliteStore(file)) as stage:
            record = await end_of(stage)
            assert (record.status, stage.agent.seen) == ("aborted", [])
            assert stage.fields("chat:recovery:skipped")[0]["reason"] == "stopped"


class TestTheStash:
    async def test_belongs_to_a_turn_that_runs(self):
        async with running(Diary, "hi") as stage:
            with pytest.raises(TurnError, match=r"self\.storage"):
                await stage.agent.stash(1)

    async def test_takes_json_of_a_modest_size(self):
        class Hoarder(Diary):
            async def before_turn(self, ctx: Any) -> None:
                with pytest.raises(TypeError, match="JSON"):
                    await self.stash(object())
                with pytest.raises(ValueError, match=r"self\.storage"):
                    await self.stash("x" * 300_000)

        async with running(Hoarder, "hi") as stage:
            assert (await stage.agent.run("hi")).status == "completed"

    async def test_goes_with_a_clear(self, file: Path):
        class Keeper(Diary):
            async def before_turn(self, ctx: Any) -> None:
                await self.stash("canary")

        async with running(Keeper, "hi", store=SqliteStore(file)) as stage:
            await stage.agent.run("hi")
            await stage.agent.clear_messages()
        with closing(sqlite3.connect(file)) as connection:
            found = connection.execute("SELECT count(*) FROM turns WHERE incident LIKE '%canary%'")
            assert found.fetchone() == (0,)


async def learns_the_end(stage: Stage[Any], client_id: str, error: str) -> Client:
    """A client that comes later is offered the turn and reads how it ended."""
    client = await stage.connect(client_id)
    await client.send(type="cf_agent_stream_resume_request")
    assert client.frames[-1] == {"type": "cf_agent_stream_resuming", "id": "q1"}
    await client.send(type="cf_agent_stream_resume_ack", id="q1")
    end = await client.until_end()
    assert (end["error"], end["body"]) == (True, error)
    return client


class TestGivingUp:
    async def test_case_69_a_model_that_always_hangs_ends_with_the_text_of_the_app(self):
        told: list[Any] = []

        class Hopeless(Stalling):
            chat_recovery = ChatRecovery(
                max_attempts=1, terminal_message=TERMINAL, on_exhausted=told.append
            )

        async with running(Hopeless, *([pause()] for _ in range(3))) as stage:
            client = await stage.connect()
            await client.ask("hi")
            end = await client.until_end()
            assert (end["error"], end["body"]) == (True, TERMINAL)
            await end_of(stage)
            assert [(ctx.reason, ctx.cause) for ctx in told] == [("max_attempts_exceeded", "stall")]
            assert kinds(stage)[-1] == "exhausted"
            await learns_the_end(stage, "later", TERMINAL)

    async def test_case_38_after_the_next_question_nobody_is_told_of_it_any_more(self):
        class Hopeless(Stalling):
            chat_recovery = ChatRecovery(max_attempts=0, terminal_message=TERMINAL)

        async with running(Hopeless, [pause()], "fine") as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until_end()
            await client.ask("again", "q2")
            await client.until_end("q2")
            later = await stage.connect("later")
            await later.send(type="cf_agent_stream_resume_request")
            assert later.frames[-1]["type"] == "cf_agent_stream_resume_none"

    async def test_a_turn_that_dies_too_often_is_parked_with_the_text_of_the_app(self, file: Path):
        told: list[Any] = []

        class Fragile(Diary):
            chat_recovery = ChatRecovery(
                max_attempts=0, terminal_message=TERMINAL, on_exhausted=told.append
            )

        await dies_after(Fragile, file)
        async with running(Fragile, store=SqliteStore(file)) as stage:
            await end_of(stage)
            await learns_the_end(stage, "tab", TERMINAL)
            assert (stage.agent.seen, kinds(stage)) == ([], ["exhausted"])
            await untyped(stage)._turns.wait_until_idle()
        row = row_of(file)
        assert (row["stop_reason"], row["client_error"]) == ("parked", TERMINAL)
        assert json.loads(row["incident"])["exhausted"] == "max_attempts_exceeded"
        assert [(ctx.reason, ctx.partial_text) for ctx in told] == [
            ("max_attempts_exceeded", "Hel")
        ]
        assert row["hooks_owed"] == 0

    async def test_case_30_an_app_that_was_not_told_hears_of_it_at_the_next_start(self, file: Path):
        told: list[Any] = []

        class Fragile(Diary):
            chat_recovery = ChatRecovery(max_attempts=0, on_exhausted=told.append)

        await dies_after(Fragile, file)
        async with running(Fragile, store=SqliteStore(file)) as stage:
            await end_of(stage)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE turns SET hooks_owed = 2")
        async with running(Fragile, store=SqliteStore(file)) as stage:
            while len(told) < 2:
                await asyncio.sleep(0)
        assert [ctx.redelivered for ctx in told] == [False, True]

    async def test_case_31_a_callback_that_raises_changes_nothing(self, file: Path, caplog: Any):
        def broken(_: Any) -> None:
            raise RuntimeError("the pager is down")

        class Fragile(Diary):
            chat_recovery = ChatRecovery(max_attempts=0, on_exhausted=broken)

        await dies_after(Fragile, file)
        with caplog.at_level(logging.ERROR):
            async with running(Fragile, "fine", store=SqliteStore(file)) as stage:
                await end_of(stage)
                assert row_of(file)["stop_reason"] == "parked"
                assert (await stage.agent.run("again")).text == "fine"
        assert "the pager is down" in caplog.text

    @pytest.mark.parametrize("answer", [False, "raises"])
    async def test_case_29_the_app_is_asked_from_the_second_time_on(self, file: Path, answer: Any):
        asked: list[int] = []

        async def keep(ctx: ChatRecoveryContext) -> Any:
            asked.append(ctx.attempt)
            if answer == "raises":
                raise RuntimeError("who knows")
            return answer

        class Asking(Diary):
            chat_recovery = ChatRecovery(should_keep_recovering=keep)

        await dies_after(Asking, file)
        await dies_after_again(Asking, file, " wor")
        assert asked == []
        async with running(Asking, "ld", store=SqliteStore(file)) as stage:
            record = await end_of(stage)
            assert asked == [2]
            if answer == "raises":
                assert record.status == "completed"
                assert "who knows" in str(stage.fields("hook:error")[0]["error"])
            else:
                assert record.stop_reason == "parked"
                (given_up,) = stage.fields("chat:recovery:exhausted")
                assert given_up["reason"] == "recovery_aborted"


async def dies_after_again(cls: type[Think], file: Path, words: str) -> None:
    """The turn is taken up, says something more, and everything ends again."""
    gate = pause()
    steps = [text(words), gate]
    async with running(cls, steps, store=SqliteStore(file), drain=0.0) as stage:
        await gate.reached()
        await untyped(stage)._turns.parts.commits.flush()
    forget_the_stop(file)


class TestTheSetting:
    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            ({"max_attempts": -1}, "a whole number, 0 or more"),
            ({"no_progress_timeout": "5m"}, "seconds, 0 or more"),
            ({"max_recovery_work": -1}, "math.inf"),
            ({"terminal_message": 7}, "a text"),
            ({"on_exhausted": "page"}, "a function"),
            ({"max_attempt": 3}, "Did you mean 'max_attempts'"),
        ],
    )
    def test_a_wrong_field_is_refused_where_it_is_written(self, fields: Any, text: str):
        with pytest.raises(TypeError, match=text):
            ChatRecovery(**fields)

    def test_a_wrong_setting_is_refused_with_the_class(self):
        with pytest.raises(AgentDefinitionError, match=r"ChatRecovery\(max_attempts=3\)"):
            type("Wrong", (Think,), {"chat_recovery": 3})

    async def test_true_and_false_mean_the_defaults(self):
        class Off(Stalling):
            chat_recovery = False

        async with running(Off, [text("Hel"), pause()], "lo") as stage:
            assert (await stage.agent.run("hi")).text == "Hello"


class TestCallsThatNeverGotAResult:
    async def test_m067_the_agent_says_what_stands_in_their_place(self):
        """An unanswered question to the user becomes a text; spec/04 §7, 02 §10.3."""

        class Asking(Think):
            def repair_interrupted_tool_part(self, part: Any) -> Any:
                if part["type"] == "tool-ask_user":
                    return {"type": "text", "text": f"(I asked: {part['input']['question']})"}
                return None

        tools = [{"name": "ask_user"}, {"name": "other"}]
        asked = [call("ask_user", {"question": "Why?"}), call("other")]
        async with running(Asking, asked, "fine") as stage:
            client = await stage.connect()
            await client.ask("hi", clientTools=tools)
            await client.until_end()
            await client.ask("never mind", "q2", clientTools=tools)
            await client.until_end("q2")
            first = (await stage.messages())[1]
            assert text_of(first) == "(I asked: Why?)"
            assert call_part(first, "other")["state"] == "output-error"

    @pytest.mark.parametrize("made", [{"type": "tool-ask_user", "state": "input-available"}, 7])
    async def test_what_no_model_accepts_is_reported_and_the_call_has_failed(self, made: Any):
        class Wrong(Think):
            async def repair_interrupted_tool_part(self, part: Any) -> Any:
                return made

        async with running(Wrong, [call("ask_user")], "fine") as stage:
            client = await stage.connect()
            await client.ask("hi", clientTools=[{"name": "ask_user"}])
            await client.until_end()
            await client.ask("never mind", "q2")
            await client.until_end("q2")
            first = (await stage.messages())[1]
            assert call_part(first, "ask_user")["state"] == "output-error"
            assert stage.fields("hook:error")[0]["event"] == "repair_interrupted_tool_part"
