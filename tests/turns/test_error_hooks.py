"""What `on_chat_error` and `classify_chat_error` are called with (M-019, M-020; spec/02 §5.12,
§5.15, §11.3).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import loosely, running
from thinkwell import Think, hook
from thinkwell.testing import error

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


class TestAMethodOfTheClass:
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
