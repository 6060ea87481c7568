"""`POST run`: turns for other programs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.http.support import DOWN, Client, Guide, file_store, talking
from tests.wire.serving import serving
from thinkwell import App, Principal
from thinkwell.hooks import ChatResponse
from thinkwell.messages.message import text_of, user_message
from thinkwell.testing import ScriptedModel, call, error, pause, text


async def run(client: Client, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await client.post("run", body)
    return answer.status, await answer.json()


async def test_a_text_is_answered_with_the_result(tmp_path: Path):
    async with talking("one two", store=file_store(tmp_path)) as client:
        status, result = await run(client, input="hi")
        stored = await client.stored()
        assert status == 200
        assert result == {
            "requestId": result["requestId"],
            "status": "completed",
            "text": "one two",
            "message": stored[1],
            "usage": {
                "inputTokens": 10,
                "outputTokens": 5,
                "totalTokens": 15,
                "reasoningTokens": None,
                "cachedInputTokens": None,
                "cacheWriteTokens": None,
                "nanoUsd": None,
            },
            "stopReason": "end",
        }


@pytest.mark.parametrize("several", [False, True])
async def test_messages_are_taken_as_they_are(several: bool):
    message = user_message("m1", "hi")
    async with talking("ok") as client:
        _, result = await run(client, input=[message] if several else message)
        assert result["text"] == "ok"
        assert (await client.stored())[0] == message


class Ending(Guide):
    """The hook of its end waits until it is let go."""

    entered: asyncio.Event
    leave: asyncio.Event

    async def on_chat_response(self, ctx: ChatResponse) -> None:
        self.entered.set()
        await self.leave.wait()
        self.runs.append("hook")


async def test_it_is_answered_after_the_hooks_of_the_end():
    """DESIGN §1: then the hooks; then a waiting caller resumes, also one that came meanwhile."""
    Ending.entered, Ending.leave, answered = asyncio.Event(), asyncio.Event(), list[str]()

    async def ask(client: Client) -> str:
        _, result = await run(client, input="hi", idempotencyKey="k")
        answered.extend(await client.runs())
        return result["text"]

    async with talking("done", cls=Ending) as client:
        asked = [asyncio.ensure_future(ask(client))]
        await Ending.entered.wait()
        asked.append(asyncio.ensure_future(ask(client)))
        assert len(await client.stored()) == 2
        assert not any(one.done() for one in asked)
        Ending.leave.set()
        assert await asyncio.gather(*asked) == ["done", "done"]
        assert answered == ["hook", "hook"]


async def test_without_waiting_it_is_only_accepted_and_can_be_looked_at():
    gate = pause()
    async with talking([gate, text("done")]) as client:
        status, accepted = await run(client, input="hi", wait=False)
        assert (status, accepted["accepted"]) == (202, True)
        await gate.reached()
        path = f"run/{accepted['requestId']}"
        looked = await (await client.get(path)).json()
        assert (looked["status"], looked["text"], looked["message"]) == ("running", "", None)
        gate.open()
        stream = await client.resume()
        if stream is not None:
            await stream.read()
        looked = await (await client.get(path)).json()
        assert (looked["status"], looked["text"]) == ("completed", "done")


class TestAgain:
    async def test_the_same_key_gives_the_first_result(self):
        async with talking("once") as client:
            first = await run(client, input="hi", idempotencyKey="k")
            assert await run(client, input="hi", idempotencyKey="k") == first
            assert len(await client.stored()) == 2

    async def test_the_same_key_with_another_input_is_a_conflict(self):
        async with talking("once") as client:
            await run(client, input="hi", idempotencyKey="k")
            status, refused = await run(client, input="something else", idempotencyKey="k")
            assert status == 409
            assert "another input" in refused["error"]
            assert len(await client.stored()) == 2

    async def test_a_key_of_scheduled_prompts_is_refused(self):
        """Else whoever may send could keep a prompt from ever becoming a turn."""
        async with talking("once") as client:
            key = "schedule:0ea137e1f6296c74:digest:2030-01-01T09:00:00Z"
            status, refused = await run(client, input="hi", idempotencyKey=key)
            assert status == 409
            assert "belongs to a scheduled task" in refused["error"]
            assert await client.stored() == []

    async def test_the_same_key_of_somebody_else_is_a_conflict(self):
        def by_header(request: Any, route: Any) -> Principal:
            return Principal(id=request.headers["x-who"])

        async with talking("once", auth=by_header) as client:
            body = {"input": "hi", "idempotencyKey": "k"}
            statuses = [
                (await client.post("run", body, x_who=who)).status for who in ("ann", "bob", "ann")
            ]
            assert statuses == [200, 409, 200]

    async def test_the_same_key_waits_for_the_turn_that_runs(self):
        gate = pause()
        async with talking([gate, text("once")]) as client:
            first = asyncio.ensure_future(run(client, input="hi", idempotencyKey="k"))
            await gate.reached()
            second = asyncio.ensure_future(run(client, input="hi", idempotencyKey="k"))
            status, known = await run(client, input="hi", idempotencyKey="k", wait=False)
            assert (status, known["accepted"], known["status"]) == (202, False, "running")
            gate.open()
            assert await first == await second

    async def test_whoever_leaves_stops_nothing_and_can_ask_again(self):
        gate = pause()
        async with talking([text("on "), gate, text("ce")]) as client:
            first = asyncio.ensure_future(run(client, input="hi", idempotencyKey="k"))
            await gate.reached()
            first.cancel()
            gate.open()
            _, result = await run(client, input="hi", idempotencyKey="k")
            assert result["text"] == "on ce"

    async def test_a_result_outlives_the_server(self, tmp_path: Path):
        store = file_store(tmp_path)
        async with talking("once", store=store) as client:
            first = await run(client, input="hi", idempotencyKey="k")
        async with talking(store=store) as client:
            assert await run(client, input="hi", idempotencyKey="k") == first


async def test_a_failure_is_a_result_and_shows_nothing_internal():
    async with talking([error(DOWN)]) as client:
        status, result = await run(client, input="hi")
        assert (status, result["status"], result["text"]) == (200, "error", "")
        assert result["error"]
        assert "down" not in result["error"]


async def test_a_turn_that_waits_for_a_person_says_so():
    async with talking([call("delete", {"path": "a"})]) as client:
        _, result = await run(client, input="clean up")
        assert (result["status"], result["stopReason"]) == ("completed", "approval")


async def test_a_stopped_turn_says_so():
    gate = pause()
    async with talking([text("half"), gate]) as client:
        first = asyncio.ensure_future(run(client, input="hi"))
        await gate.reached()
        await client.post("chat/stop")
        _, result = await first
        assert (result["status"], result["text"]) == ("aborted", "half")


async def test_metadata_reaches_the_turn():
    class Curious(Guide):
        def before_turn(self, ctx: Any) -> None:
            self.runs.append(str(ctx.turn_metadata))

    async with talking("ok", cls=Curious) as client:
        await run(client, input="hi", metadata={"job": 7})
        assert await client.runs() == ["{'job': 7}"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "`input` must be a text"),
        ({"input": ""}, "`input` must be a text"),
        ({"input": []}, "`input` must be a text"),
        ({"input": 7}, "`input` must be a text"),
        ({"input": {"role": "user"}}, "a message needs a non-empty string `id`"),
        ({"input": "x", "wait": "no"}, "`wait` must be true or false"),
        ({"input": "x", "metadata": []}, "`metadata` must be an object"),
        ({"input": "x", "idempotencyKey": ""}, "`idempotencyKey` must be a text"),
        ({"inptu": "x"}, "There is no field 'inptu'. Known: input, metadata"),
    ],
)
async def test_what_cannot_run_is_explained(body: dict[str, Any], said: str):
    async with talking() as client:
        answer = await client.post("run", body)
        assert answer.status == 400
        assert said in (await answer.json())["error"]
        assert await client.stored() == []


async def test_an_unknown_turn():
    async with talking() as client:
        answer = await client.get("run/no%20such")
        assert answer.status == 404
        assert await answer.json() == {"error": "There is no turn 'no such'."}


async def test_a_form_of_another_site_cannot_start_a_turn():
    async with talking() as client:
        answer = await client.post("run", {"input": "x"}, content_type="text/plain")
        assert answer.status == 415
        answer = await client.post("run", {"input": "x"}, origin="https://evil.example")
        assert answer.status == 403
        assert await client.stored() == []


async def test_a_server_that_stops_says_that_the_turn_goes_on(tmp_path: Path):
    gate = pause()
    model = ScriptedModel([[gate, text("late")]])
    made = type("Served", (Guide,), {"model_of": {"x": model}, "runs": []}, name="guide")
    app = App(agents=[made], store=file_store(tmp_path))
    async with serving(app) as url, aiohttp.ClientSession() as session:
        client = Client(f"{url}/agents/guide/x", session, model)
        asked = asyncio.ensure_future(run(client, input="hi", idempotencyKey="k"))
        await gate.reached()
        stopping = asyncio.ensure_future(app.stop())
        status, result = await asked
        await stopping
    assert status == 503
    assert "goes on at its next start" in result["error"]
    async with talking("late", store=file_store(tmp_path)) as client:
        _, result = await run(client, input="hi", idempotencyKey="k")
        assert result["text"] == "late"
        assert [text_of(message) for message in await client.stored()] == ["hi", "late"]
