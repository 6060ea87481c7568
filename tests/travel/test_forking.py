"""A fork goes on from a step of a turn and never repeats an effect (spec/04 §22.3, §23.80)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.travel.effects import Effects, effects
from thinkwell import App, Think, tool
from thinkwell.core.errors import ConfigurationError, TurnError, TurnNotFoundError
from thinkwell.host.forking import ForkOptions, write_fork
from thinkwell.messages.message import UIMessage, text_of, tool_parts
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call, text

PAY = [text("Paying."), call("pay", {"who": "Bo"})]
MAIL = [call("mail", {"to": "Bo"})]


@pytest.fixture(scope="module")
def recorder() -> Iterator[Effects]:
    with effects() as found:
        yield found


@pytest.fixture
def clerk(recorder: Effects) -> type[Think]:
    class Clerk(Think, name="clerk"):
        system_prompt = "You pay and you mail."
        model = ScriptedModel([PAY, MAIL, "All done."])

        @tool
        async def pay(self, who: str) -> str:
            """Pays somebody."""
            recorder.add("pay")
            return f"paid {who}"

        @tool
        async def mail(self, to: str) -> str:
            """Mails somebody."""
            recorder.add("mail")
            return f"mailed {to}"

    return Clerk


def outputs(message: UIMessage) -> list[Any]:
    return [part.get("output") or part.get("errorText") for part in tool_parts(message)]


async def test_it_replays_live_up_to_the_last_tool_without_one_effect(
    clerk: type[Think], recorder: Effects
):
    """spec/04 §23.80, with the recorder of effects in another process."""
    async with App(agents=[clerk], store="sqlite://:memory:") as app:
        first = await app.agent(clerk, "a").run("Pay Bo and tell him.")
        had = recorder.counts()
        other = ScriptedModel([PAY, MAIL, "Done differently."], model_id="other")
        fork = await app.turns.fork(first.request_id, model=other, name="b", tools="live")
        assert fork.request_id is not None
        ended = await app.turns.wait(fork.request_id)
        assert recorder.counts() == had
        reply = (await app.agent(clerk, "b").get_messages())[-1]
    assert (ended.status, text_of(reply)) == ("completed", "Paying.Done differently.")
    assert outputs(reply) == ["paid Bo", "mailed Bo"]


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_it_goes_on_from_any_step_with_another_model_and_prompt(
    clerk: type[Think], recorder: Effects, at: int
):
    async with App(agents=[clerk], store="sqlite://:memory:") as app:
        first = await app.agent(clerk, "a").run("Pay Bo and tell him.")
        had, other = recorder.counts(), ScriptedModel(["Enough."])
        fork = await app.turns.fork(
            first.request_id, at=at, model=other, system_prompt="Be brief.", name="b"
        )
        assert fork.agent == "clerk/b"
        await app.turns.wait(str(fork.request_id))
        reply = (await app.agent(clerk, "b").get_messages())[-1]
        source = await app.agent(clerk, "a").get_messages()
    assert recorder.counts() == had
    (request,) = other.requests
    assert request.system.startswith("Be brief.")
    assert len(request.messages) == 1 + 2 * at
    assert outputs(reply) == ["paid Bo", "mailed Bo"][:at]
    assert text_of(source[-1]) == "Paying.All done."


async def test_other_calls_are_asked_about_and_run_when_a_person_allows_them(
    clerk: type[Think], recorder: Effects
):
    async with App(agents=[clerk], store="sqlite://:memory:") as app:
        first = await app.agent(clerk, "a").run("Pay Bo and tell him.")
        had = recorder.counts()
        steps = [PAY, [call("pay", {"who": "Al"}, id="new")], MAIL, "Both."]
        fork = await app.turns.fork(first.request_id, model=ScriptedModel(steps), name="b")
        ended = await app.turns.wait(str(fork.request_id))
        assert (ended.stop_reason, recorder.counts()) == ("approval", had)
        agent = app.agent(clerk, "b")
        await agent.respond_to_approval("new", approved=True)
        await agent.wait_until_stable()
        assert recorder.counts() == {**had, "pay": had["pay"] + 1}
        reply = (await agent.get_messages())[-1]
    assert outputs(reply) == ["paid Bo", "paid Al", "mailed Bo"]


async def test_or_they_are_refused_or_run(clerk: type[Think], recorder: Effects):
    async with App(agents=[clerk], store="sqlite://:memory:") as app:
        first = await app.agent(clerk, "a").run("Pay Bo and tell him.")
        had = recorder.counts()
        found: dict[str, list[Any]] = {}
        for tools in ("deny", "live"):
            model = ScriptedModel([[call("pay", {"who": "Al"})], "ok"])
            fork = await app.turns.fork(first.request_id, model=model, name=tools, tools=tools)
            await app.turns.wait(str(fork.request_id))
            found[tools] = outputs((await app.agent(clerk, tools).get_messages())[-1])
    assert "fork" in found["deny"][0]
    assert found["live"] == ["paid Al"]
    assert recorder.counts() == {**had, "pay": had["pay"] + 1}


async def test_a_call_that_a_person_allowed_does_not_run_again_in_a_fork(recorder: Effects):
    class Careful(Think, name="clerk"):
        model = ScriptedModel([[call("pay", {"who": "Bo"}, id="c1")], "Paid."])

        @tool(needs_approval=True)
        async def pay(self, who: str) -> str:
            """Pays somebody."""
            recorder.add("pay")
            return f"paid {who}"

    async with App(agents=[Careful], store="sqlite://:memory:") as app:
        agent = app.agent(Careful, "a")
        await agent.run("Pay Bo.")
        await agent.respond_to_approval("c1", approved=True)
        await agent.wait_until_stable()
        had = recorder.counts()
        continuation = (await app.turns.list(agent="clerk/a"))[0]
        assert continuation.continuation
        fork = await app.turns.fork(
            continuation.request_id, model=ScriptedModel(["Again."]), tools="live", name="b"
        )
        await app.turns.wait(str(fork.request_id))
        reply = (await app.agent(Careful, "b").get_messages())[-1]
    assert (text_of(reply), outputs(reply)) == ("Again.", ["paid Bo"])
    assert recorder.counts() == had


async def test_at_a_message_only_the_conversation_is_copied(clerk: type[Think]):
    async with App(agents=[clerk], store="sqlite://:memory:") as app:
        agent = app.agent(clerk, "a")
        first = await agent.run("Pay Bo and tell him.")
        messages = await agent.get_messages()
        fork = await app.turns.fork(first.request_id, at=messages[0]["id"], name="b")
        assert fork.request_id is None
        assert await app.agent(clerk, "b").get_messages() == messages[:1]


async def test_a_process_that_dies_after_the_commit_goes_on_with_it_at_its_next_start(
    clerk: type[Think], recorder: Effects, tmp_path: Path
):
    store = f"sqlite:///{tmp_path / 't.db'}"
    async with App(agents=[clerk], store=store) as app:
        first = await app.agent(clerk, "a").run("Pay Bo and tell him.")
        record = (await app.turns.list())[0]
    had = recorder.counts()
    # What `fork` does up to its commit; the process is gone before anything is woken.
    beside = SqliteStore(tmp_path / "t.db")
    await beside.open()
    fork = await write_fork(beside, record, ForkOptions(at=2, name="b"), now=1.0)
    await beside.close()
    setattr(clerk, "model", ScriptedModel(["After the start."]))  # noqa: B010
    async with App(agents=[clerk], store=store) as app:
        ended = await app.turns.wait(str(fork.request_id))
        assert (ended.status, first.status) == ("completed", "completed")
        reply = (await app.agent(clerk, "b").get_messages())[-1]
    assert text_of(reply) == "Paying.After the start."
    assert recorder.counts() == had


async def test_what_cannot_be_forked_says_why(clerk: type[Think]):
    async with App(agents=[clerk], store="sqlite://:memory:") as app:
        first = await app.agent(clerk, "a").run("Pay Bo and tell him.")
        with pytest.raises(TurnNotFoundError):
            await app.turns.fork("nope")
        with pytest.raises(TurnError, match="Choose at=0 to at=2"):
            await app.turns.fork(first.request_id, at=3)
        with pytest.raises(TurnError, match="already"):
            await app.turns.fork(first.request_id, name="a")
        with pytest.raises(TurnError, match="no message"):
            await app.turns.fork(first.request_id, at="nope")
        wrong: Any = "yes"
        with pytest.raises(ConfigurationError, match='"ask", "deny" or "live"'):
            await app.turns.fork(first.request_id, tools=wrong)
        assert [row.agent_id for row in await app.turns.list()] == ["clerk/a"]
