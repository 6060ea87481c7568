"""Any turn becomes a test: a case in a file, replayed against the code of today."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.travel.support import asked, case_of
from tests.turns.support import running
from thinkwell import App, Principal, Think, TurnConfig, tool
from thinkwell.core.errors import ConfigurationError, ReplayError
from thinkwell.host.bare_agent import bare_agent
from thinkwell.host.replaying import replay_case
from thinkwell.journal.turns import find_turn
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call, replay, text
from thinkwell.turn.travel.case import Case, read_case
from thinkwell.turn.travel.export import make_case
from thinkwell.turn.travel.story import tell

pytest_plugins = ["thinkwell.pytest_plugin"]


class Clerk(Think, name="clerk"):
    system_prompt = "You file things."
    told: list[str] = []
    ran: list[str] = []

    @tool(effect="pure")
    async def look(self, what: str) -> dict[str, Any]:
        """Looks something up."""
        self.ran.append(what)
        return {"found": what}

    async def on_chat_response(self, ctx: Any) -> None:
        self.told.append(ctx.request_id)


@pytest.fixture
async def case(tmp_path: Path) -> Path:
    class Real(Clerk, name="clerk"):
        def before_turn(self, ctx: Any) -> TurnConfig:
            return TurnConfig(headers={"x-team": "files"})

    store = SqliteStore(":memory:")
    steps = ["one", [text("I look."), call("look", {"what": "x"})], "done"]
    async with running(Real, *steps, store=store) as stage:
        await asked(stage, "hi", "q1")
        await asked(stage, "and on", "q2")
        (await case_of(store, "q2")).save(tmp_path / "case.json")
    Clerk.told.clear()
    Clerk.ran.clear()
    return tmp_path / "case.json"


class TestTheFixture:
    def test_passes_while_the_code_sends_the_same(self, case: Path, replay: Any):
        result = replay(case, Clerk, allow=["settings"])
        assert result.turn.status == "completed"
        assert Clerk.ran == []
        assert Clerk.told == []  # nobody hears of the end of a replay

    async def test_works_in_an_async_test_too(self, case: Path, replay: Any):
        assert replay(case, Clerk, allow="settings").journal.bodies

    def test_names_the_first_message_that_differs_and_both_values(self, case: Path):
        class Louder(Clerk, name="clerk"):
            def before_step(self, ctx: Any) -> Any:
                from thinkwell import StepConfig
                from thinkwell.messages.model_messages import TextContent, UserMessage

                if ctx.step_number == 0:
                    return None
                said = UserMessage((TextContent("AND ON"),))
                return StepConfig(messages=(*ctx.messages[:2], said, *ctx.messages[3:]))

        with pytest.raises(ReplayError) as failure:
            replay(case, Louder, allow=["settings"])
        lines = str(failure.value).splitlines()
        assert lines[0] == (
            "step 1: the model is sent something else at messages[2].content[0].text"
        )
        assert [line.strip() for line in lines[1:3]] == ["recorded: and on", "now:      AND ON"]

    def test_another_prompt_fails_unless_it_is_allowed(self, case: Path):
        class Kinder(Clerk, name="clerk"):
            system_prompt = "You file things kindly."

        with pytest.raises(ReplayError, match="at system"):
            replay(case, Kinder, allow=["settings"])
        replay(case, Kinder, allow=["settings", "prompt"])

    def test_another_description_fails_unless_it_is_allowed(self, case: Path):
        class Other(Think, name="clerk"):
            system_prompt = "You file things."

            @tool(effect="pure")
            async def look(self, what: str) -> dict[str, Any]:
                """Looks something up quickly."""
                return {}

        with pytest.raises(ReplayError, match=r"tools\.look\.description"):
            replay(case, Other, allow=["settings"])
        replay(case, Other, allow=["settings", "descriptions"])

    def test_a_tool_that_is_given_something_else_fails(self, case: Path):
        class Changing(Clerk, name="clerk"):
            def before_tool_call(self, ctx: Any) -> Any:
                from thinkwell import Allow

                return Allow({"what": "y"})

        with pytest.raises(ReplayError, match=r"a tool is given something else: look"):
            replay(case, Changing, allow=["settings"])

    def test_a_model_call_more_or_less_fails(self, case: Path):
        class Short(Clerk, name="clerk"):
            max_steps = 1

        with pytest.raises(ReplayError, match="another number of times"):
            replay(case, Short, allow=["settings", "prompt"])

    def test_state_and_stored_values_can_be_prepared(self, case: Path):
        class Remembers(Clerk, name="clerk"):
            async def get_system_prompt(self) -> str:
                return str(await self.storage.get("prompt"))

        async def prepare(agent: Any) -> None:
            await agent.storage.set("prompt", "You file things.")

        replay(case, Remembers, allow=["settings"], prepare=prepare)

    def test_mistakes_are_told(self, case: Path, tmp_path: Path):
        wrong: Any = Clerk.__name__
        with pytest.raises(ConfigurationError, match="give the class of the agent"):
            replay(case, wrong)
        with pytest.raises(ConfigurationError, match="names no difference"):
            replay(case, Clerk, allow=["promt"])
        with pytest.raises(ConfigurationError, match="Cannot read the case"):
            replay(tmp_path / "nope.json", Clerk)
        (tmp_path / "other.json").write_text('{"a": 1}')
        with pytest.raises(ConfigurationError, match="thinkwell turns export"):
            replay(tmp_path / "other.json", Clerk)
        later = case.read_text().replace('"version": 1', '"version": 99')
        with pytest.raises(ConfigurationError, match="reads up to 1"):
            read_case(later)

    def test_is_there_for_everybody_and_costs_nothing_until_it_is_used(self, tmp_path: Path):
        (tmp_path / "test_plain.py").write_text(
            "import sys\n"
            "def test_it():\n"
            "    assert 'thinkwell.testing' not in sys.modules\n"
            "def test_fixture(replay):\n"
            "    assert callable(replay)\n"
        )
        arguments = [
            "-p",
            "thinkwell.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "-q",
            "-c",
            "/dev/null",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, str(tmp_path)],
            cwd=tmp_path,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "2 passed" in done.stdout, done.stdout + done.stderr


class TestTheFile:
    async def test_holds_nothing_that_hooks_removed_and_no_credential(self):
        class Guarded(Think, name="clerk"):
            @tool(effect="pure")
            async def look(self) -> str:
                """Looks."""
                return "canary-7"

            def on_tool_result(self, ctx: Any) -> Any:
                return {"result": "hidden"}

            def before_turn(self, ctx: Any) -> TurnConfig:
                return TurnConfig(headers={"Authorization": "canary-8", "x-team": "canary-9"})

        store = SqliteStore(":memory:")
        async with running(Guarded, [call("look")], "ok", store=store) as stage:
            client = await stage.connect("tab", principal=Principal(id="ann", claims={"c": "c-10"}))
            await client.ask("hi", "q1", secret="c-11")
            await client.until_end("q1")
            await stage.agent.set_state({"kept": "c-12"})
            record = await find_turn(store, "clerk/x", "q1")
            assert record is not None
            whole = (await make_case(store, record)).to_json()
            every = ("headers", "principal", "body", "state")
            little = await make_case(store, record, leave_out=every)
            again = await replay_case(read_case(little.to_json()), Guarded)
            wrong: Any = ["everything"]
            with pytest.raises(ConfigurationError, match="Choose from: headers"):
                await make_case(store, record, leave_out=wrong)
        assert "hidden" in whole
        for canary in ("canary-7", "canary-8"):
            assert canary not in whole
        for canary in ("canary-9", "c-10", "c-11", "c-12"):
            assert canary in whole
            assert canary not in little.to_json()
        assert again.differences == ()

    async def test_is_replayed_without_the_app_too(self, case: Path):
        recorded = Case.load(case)
        result = await replay_case(recorded, await bare_agent(recorded, live=False))
        assert [each for each in result.differences if not each.path.startswith("headers")] == []
        assert result.journal.bodies == recorded.journal.bodies

    async def test_tells_requests_replies_tools_hooks_times_and_cost(self, case: Path):
        story = await tell(Case.load(case), lambda provider, model, usage: 0.5)
        first, second = story.steps
        assert (first.text, second.text, story.cost) == ("I look.", "done", 1.0)
        assert [d.said for d in story.decisions] == [{"headers": True}]
        (use,) = first.models
        assert use.request is not None
        assert (use.provider, use.finish_reason, use.usage.input_tokens) == (
            "scripted",
            "tool-calls",
            10,
        )
        assert use.took is not None
        (look,) = first.tools
        assert (look.tool_name, look.input, look.effect) == ("look", {"what": "x"}, "pure")
        assert (look.outcome, look.output) == ("executed", {"found": "x"})
        assert story.seconds is not None


async def test_another_model_is_tried_with_recorded_tools(case: Path):
    recorded = Case.load(case)
    model = ScriptedModel([[call("look", {"what": "x"})], [call("look", {"what": "z"})], "other"])
    result = await replay_case(recorded, Clerk, model=model)
    first, second = (str(request.messages[-1]) for request in model.requests[1:])
    assert "{'found': 'x'}" in first
    assert "not in the record" in second
    assert result.usage.input_tokens == 30


async def test_what_is_stored_is_not_touched(tmp_path: Path):
    class Simple(Think, name="clerk"):
        model = ScriptedModel(["one"])

        async def on_start(self) -> None:
            await self.storage.set("started", (await self.storage.get("started") or 0) + 1)

    async with App(agents=[Simple], store=f"sqlite:///{tmp_path / 't.db'}") as app:
        agent = app.agent(Simple, "a")
        done = await agent.run("hi")
        before = [await agent.storage.get("started"), await agent.get_messages()]
        result = await app.turns.replay(done.request_id)
        assert result.identical
        assert [await agent.storage.get("started"), await agent.get_messages()] == before
        assert len(await app.turns.list()) == 1
        story = await app.turns.show(done.request_id)
        assert [step.text for step in story.steps] == ["one"]
