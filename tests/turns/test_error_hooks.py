"""What `on_chat_error` and `classify_chat_error` are called with (M-019, M-020; spec/02 §5.12,
§5.15, §11.3).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import loosely, part_of, running
from thinkwell import Think, hook, tool
from thinkwell.core.errors import SessionError
from thinkwell.messages.message import text_of, user_message
from thinkwell.session.tree import MessageTree
from thinkwell.testing import call, error, text

BOOM = RuntimeError("boom")


class Deaf(Think):
    """Fails; `heard` has what its hooks were called with."""

    heard: list[Any]
    max_retries = 0

    async def on_start(self) -> None:
        self.heard = []


class ErrorOnly(Deaf):
    def on_chat_error(self, error: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - as in the seeds
        self.heard.append(error)
        return "Please wait."

    def classify_chat_error(self, error: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - as in the seeds
        self.heard.append(error)
        return "fatal"


class OptionalContext(Deaf):
    def on_chat_error(self, error: Any, ctx: Any = None) -> Any:
        self.heard.append((error, ctx.stage, ctx.classification))

    def classify_chat_error(self, error: Any, context: Any = None) -> Any:
        self.heard.append((error, context.stage))
        return "fatal"


class ContextOnly(Deaf):
    def on_chat_error(self, ctx: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - what works must go on working
        self.heard.append(ctx.error)


class Decorated(Deaf):
    @hook("on_chat_error")
    def note(self, error: Any) -> None:
        self.heard.append(error)

    @hook("on_chat_error")
    def look(self, ctx: Any) -> None:
        self.heard.append(ctx.stage)


class Apologetic(Deaf):
    def on_chat_error(self, error: Any, ctx: Any) -> Any:
        return {"error": "sorry"}


class TestAMethodOfTheClass:
    async def test_an_answer_that_is_no_error_is_reported_and_changes_nothing(self):
        async with running(Apologetic, [error(BOOM)]) as stage:
            result = await stage.agent.run("hi")
            assert result.error == "boom"
            (event,) = stage.fields("hook:error")
            assert str(event["error"]) == (
                "Apologetic.on_chat_error returned {'error': 'sorry'}; return an exception, a text "
                "or None."
            )

    async def test_000_one_argument_is_the_error(self):
        async with running(ErrorOnly, [error(BOOM)]) as stage:
            result = await stage.agent.run("hi")
            assert stage.agent.heard == [BOOM, BOOM]
            assert str(result.error) == "Please wait."

    async def test_000_an_optional_context_comes_along(self):
        async with running(OptionalContext, [error(BOOM)]) as stage:
            await stage.agent.run("hi")
            assert stage.agent.heard == [(BOOM, "stream"), (BOOM, "stream", "fatal")]

    async def test_one_argument_called_ctx_is_the_context(self):
        async with running(ContextOnly, [error(BOOM)]) as stage:
            await stage.agent.run("hi")
            assert stage.agent.heard == [BOOM]

    async def test_a_marked_method_is_asked_by_the_name_of_its_argument(self):
        async with running(Decorated, [error(BOOM)]) as stage:
            await stage.agent.run("hi")
            assert stage.agent.heard == [BOOM, "stream"]


class TestARegisteredFunction:
    @pytest.mark.parametrize("event", ["on_chat_error", "classify_chat_error"])
    async def test_002_a_default_that_a_lambda_binds_is_no_argument(self, event: Any):
        async with running(Deaf, [error(BOOM)]) as stage:
            heard = stage.agent.heard
            for tag in "ab":
                loosely(stage.agent).add_hook(
                    event, lambda ctx, tag=tag: heard.append((tag, ctx.error, ctx.stage))
                )
            await stage.agent.run("hi")
            assert heard == [("a", BOOM, "stream"), ("b", BOOM, "stream")]

    async def test_002_one_argument_is_the_context_unless_it_is_called_error(self):
        async with running(Deaf, [error(BOOM)]) as stage:
            heard = stage.agent.heard
            stage.agent.add_hook("on_chat_error", lambda it: heard.append(it.error))
            stage.agent.add_hook("on_chat_error", lambda error: heard.append(error))
            stage.agent.add_hook(
                "on_chat_error", lambda error, ctx=None: heard.append((error, ctx.stage))
            )
            stage.agent.add_hook("on_chat_error", lambda *both: heard.append(both[0]))
            await stage.agent.run("hi")
            assert heard == [BOOM, BOOM, (BOOM, "stream"), BOOM]


class Reader(Deaf):
    """Reads the conversation in its error hook, and makes no more of it."""

    @tool
    async def look(self) -> str:
        """Look around."""
        return "fog"

    @tool(needs_approval=True)
    async def paint(self) -> str:
        """Paint."""
        return "painted"

    async def on_chat_error(self, error: Any, ctx: Any) -> None:
        messages = await self.get_messages()
        self.heard.append([(m["role"], text_of(m)) for m in messages])
        self.heard.append(await self.session.get_message(ctx.partial["id"]) == ctx.partial)
        self.heard.append(messages[-1] == ctx.partial)
        snapshot = await self.history.get_snapshot()
        assert await self.history.get_snapshot() is snapshot  # nothing has changed in between
        self.heard.append([m.role for m in snapshot])


class TestWhatWasAnsweredIsInStorage:
    async def test_m020_the_hook_reads_the_partial_answer(self):
        async with running(Reader, [text("Hel"), error(BOOM)]) as stage:
            await stage.agent.run("hi")
            assert stage.agent.heard == [
                [("user", "hi"), ("assistant", "Hel")],
                True,
                True,
                ["user", "assistant"],
            ]
            assert [text_of(m) for m in await stage.messages()] == ["hi", "Hel"]
            assert len(stage.fields("chat:request:failed")) == 1

    async def test_m020_its_chunks_are_committed_by_then(self):
        async with running(Reader, [text("Hel"), error(BOOM)]) as stage:
            before: list[str] = []
            stage.agent.add_hook("on_chat_error", lambda _: before.extend(stage.log))
            await stage.agent.run("hi")
            assert "committed text-delta" in before
            assert "stored assistant" not in before  # that is one with the end

    async def test_m020_steps_and_results_are_in_it(self):
        async with running(Reader, [call("look")], [text("So"), error(BOOM)]) as stage:
            await stage.agent.run("hi")
            assert stage.agent.heard[3] == ["user", "assistant", "tool", "assistant"]

    async def test_m020_so_it_is_of_a_continuation(self):
        steps = [text("One."), call("paint")], [text("Two."), error(BOOM)]
        async with running(Reader, *steps) as stage:
            await stage.agent.run("hi")
            await stage.agent.respond_to_approval("call-1", True)
            await stage.agent.wait_until_stable()
            assert stage.agent.heard[0] == [("user", "hi"), ("assistant", "One.Two.")]
            assert stage.agent.heard[1:3] == [True, True]

    async def test_a_call_without_a_result_has_one_by_then(self):
        class Cut(Reader):
            async def on_chat_error(self, error: Any, ctx: Any) -> None:
                self.heard.append(part_of((await self.get_messages())[-1])["state"])

        async with running(Cut, [call("look"), error(BOOM)]) as stage:
            await stage.agent.run("hi")
            assert stage.agent.heard == ["output-error"]

    @pytest.mark.parametrize("whole", [True, False])
    async def test_a_hook_that_adds_to_what_it_reads_stores_the_answer_once(self, whole: bool):
        class Adds(Reader):
            async def on_chat_error(self, error: Any, ctx: Any) -> None:
                note = user_message("note", "It failed.")
                if whole:
                    await self.session.add_messages(lambda history: [*history, note])
                else:
                    await self.add_messages([note])

        async with running(Adds, [text("Hel"), error(BOOM)], "next") as stage:
            await stage.agent.run("hi")
            stored = await stage.messages()
            assert sorted(text_of(m) for m in stored) == ["Hel", "It failed.", "hi"]
            assert (await stage.agent.run("again")).text == "next"

    async def test_nobody_reads_an_answer_that_has_nothing_in_it(self):
        class Silent(Reader):
            async def on_chat_error(self, error: Any, ctx: Any) -> None:
                self.heard.append(len(await self.get_messages()))

        async with running(Silent, [error(BOOM)]) as stage:
            await stage.agent.run("hi")
            assert stage.agent.heard == [1]


class TestStages:
    async def test_m020_what_cannot_be_parsed_is_told_on_the_bus_too(self):
        async with running(Deaf, "fine") as stage:
            client = await stage.connect()
            init = {"method": "POST", "body": "{half"}
            await client.send(type="cf_agent_use_chat_request", id="q1", init=init)
            await client.until_end()
            (event,) = stage.fields("chat:request:failed")
            assert (event["stage"], event["messages_persisted"]) == ("parse", False)
            assert event["request_id"] == "q1"

    async def test_11_1_what_cannot_be_stored_is_persist(self, monkeypatch: pytest.MonkeyPatch):
        async with running(Deaf, "fine") as stage:
            seen: list[str] = []
            stage.agent.add_hook("on_chat_error", lambda ctx: seen.append(ctx.stage))

            async def refuse(*_: Any, **__: Any) -> Any:
                raise SessionError("The message is too large.")

            monkeypatch.setattr(MessageTree, "append", refuse)
            result = await stage.agent.run("hi")
            assert (result.status, seen) == ("error", ["persist"])
            assert stage.fields("chat:request:failed")[0]["stage"] == "persist"

    async def test_11_1_what_cannot_be_read_is_transcript(self, monkeypatch: pytest.MonkeyPatch):
        async with running(Deaf, "fine") as stage:
            seen: list[Any] = []
            stage.agent.add_hook(
                "on_chat_error", lambda ctx: seen.append((ctx.stage, ctx.messages_persisted))
            )

            async def refuse(*_: Any, **__: Any) -> Any:
                raise SessionError("The row cannot be decoded.")

            monkeypatch.setattr(stage.agent.session, "get_recent_history", refuse)
            result = await stage.agent.run("hi")
            assert (result.status, seen) == ("error", [("transcript", True)])
            monkeypatch.undo()
            assert (await stage.agent.run("again")).text == "fine"
