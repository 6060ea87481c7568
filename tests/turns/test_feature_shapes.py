"""A feature, or a call, of the wrong shape: the error names it and says what to write."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import App, Think, create_agent
from thinkwell.core.errors import AgentDefinitionError, ConfigurationError, FeatureError, JobError
from thinkwell.features import Feature, Suggestions, Without
from thinkwell.testing import ScriptedModel


def returning(method: str, value: Any, *, slow: bool = False) -> type[Think]:
    """An agent with a feature one of whose methods returns something else than it should."""

    async def later(self: Any, *_: Any) -> Any:
        return value

    def now(self: Any, *_: Any) -> Any:
        return value

    odd = type("Odd", (Feature,), {"name": "odd", method: later if slow else now})

    class Keeper(Think):
        features = [odd()]
        expose_errors = True

    return Keeper


@pytest.mark.parametrize("method", ["hooks", "calls", "routes", "jobs"])
@pytest.mark.parametrize("value", [None, "text", 5])
async def test_a_feature_that_brings_something_odd_is_named_when_the_agent_wakes(
    method: str, value: Any
):
    with pytest.raises(FeatureError, match=rf"'odd' failed in {method}.*returned .*Return "):
        async with running(returning(method, value)):
            pass


@pytest.mark.parametrize(("method", "value"), [("hooks", []), ("calls", []), ("routes", {})])
async def test_lists_and_mappings_are_not_taken_for_one_another(method: str, value: Any):
    with pytest.raises(FeatureError, match=rf"'odd' failed in {method}.*Return "):
        async with running(returning(method, value)):
            pass


@pytest.mark.parametrize("method", ["hooks", "calls", "routes", "jobs"])
async def test_a_method_that_is_asked_at_once_must_not_be_async(method: str):
    with pytest.raises(FeatureError, match=rf"'odd' failed in {method}.*Write `def {method}"):
        async with running(returning(method, {}, slow=True)):
            pass


@pytest.mark.parametrize("method", ["tools", "prompt"])
@pytest.mark.parametrize(("value", "slow"), [(["a"], False), ("", True)])
async def test_an_odd_tool_list_or_prompt_fails_the_turn_by_name(
    method: str, value: Any, slow: bool
):
    async with running(returning(method, value, slow=slow), "hi") as stage:
        error = (await stage.agent.run("hello")).error or ""
        assert f"The feature 'odd' failed in {method}" in error
        assert ("Write `def" if slow else "Return ") in error


async def test_a_greeting_that_is_no_list_is_logged_by_name(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.ERROR):
        async with running(returning("greet", "hello")) as stage:
            await stage.connect()
    assert [r.getMessage().startswith("greet of the feature 'odd'") for r in caplog.records] == [
        True
    ]


@pytest.mark.parametrize("given", [Suggestions({}), Suggestions, Without("scopes"), None, "a", {}])
def test_features_must_be_a_list(given: Any):
    with pytest.raises(AgentDefinitionError, match=r"Bad\.features .*Write a list"):
        type("Bad", (Think,), {"features": given})
    with pytest.raises(AgentDefinitionError, match=r"App\(features=\.\.\.\) .*Write a list"):
        App(agents=[Think], features=given)
    with pytest.raises(AgentDefinitionError, match=r"features .*Write a list"):
        create_agent(model=ScriptedModel([]), features=given)


async def test_an_app_leaves_nothing_out():
    class Plain(Think): ...

    app = App(agents=[Plain], store="sqlite://:memory:", features=[Without("http_run")])  # type: ignore[list-item]
    with pytest.raises(AgentDefinitionError, match=r"Without\('http_run'\).*on the class"):
        await app.start()


@pytest.mark.parametrize("given", [["a"], "a", {"a": 1}, {1: "a"}, None])
def test_suggestions_are_texts_by_title(given: Any):
    with pytest.raises(AgentDefinitionError, match=r"Suggestions\(.*What can you do"):
        Suggestions(given)


class Bob(Think, name="bob"):
    async def hello(self) -> str:
        return self.name


async def test_an_app_finds_agents_by_class_and_by_name():
    async with App(agents=[Bob], store="sqlite://:memory:") as app:
        assert await app.agent("bob", "x").hello() == "x"
        await app.agent(Bob, "x").storage.set("a", 1)
        assert await app.delete("bob", "x")


@pytest.mark.parametrize("given", ["rob", Think, 5])
async def test_an_app_says_which_agents_it_serves(given: Any):
    async with App(agents=[Bob], store="sqlite://:memory:") as app:
        with pytest.raises(ConfigurationError, match=r"does not serve .*Bob"):
            app.agent(given, "x")
        with pytest.raises(ConfigurationError, match=r"does not serve .*Bob"):
            await app.delete(given, "x")


async def test_a_block_of_storage_cannot_be_opened_from_outside():
    async with App(agents=[Bob], store="sqlite://:memory:") as app:
        with pytest.raises(AttributeError, match=r"storage\.together.*async method of the agent"):
            async with app.agent(Bob).storage.together():
                pass


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [1, -float("inf")]}])
async def test_numbers_that_json_cannot_hold_are_refused_where_they_would_be_stored(value: Any):
    async with running(Bob) as stage:
        with pytest.raises(ValueError, match=r"value.* is (nan|-?inf), which JSON cannot hold"):
            await stage.agent.storage.set("n", value)
        assert await stage.agent.storage.list() == {}
        with pytest.raises(JobError, match=r"payload of 'hello'.*(nan|inf)"):
            await stage.agent.jobs.enqueue("hello", {"x": value})
        assert await stage.agent.jobs.list() == []


async def test_a_key_is_a_text():
    async with running(Bob) as stage:
        with pytest.raises(ValueError, match=r"A key has 1 to 512 characters; 5 does not"):
            await stage.agent.storage.set(5, 1)  # type: ignore[arg-type]
