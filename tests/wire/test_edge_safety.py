"""Names this server answers to, connection ids, and what tools say when they fail (SECURITY.md)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.wire.room import Chat, part_of, room
from thinkwell import ToolError, tool
from thinkwell.testing import call

ELSEWHERE = "evil.example:8787"


async def status(r: Any, host: str) -> int:
    url = f"{r.browser.url}{r.path}/get-messages"
    async with r.browser.session.get(url, headers={"host": host}) as answer:
        return answer.status


class TestHosts:
    async def test_without_auth_an_app_answers_only_to_names_of_this_machine(self):
        async with room() as r:
            assert await status(r, ELSEWHERE) == 400
            assert await status(r, "localhost:9") == 200
            assert await r.browser.refused(r.path, host=ELSEWHERE) == 400

    async def test_a_name_that_is_allowed_is_answered(self):
        async with room(allowed_hosts=["evil.example"]) as r:
            assert await status(r, ELSEWHERE) == 200

    async def test_any_name_is_answered_if_the_app_says_so(self):
        async with room(allowed_hosts=["*"]) as r:
            assert await status(r, ELSEWHERE) == 200

    async def test_with_auth_any_name_is_answered(self):
        async with room(auth=lambda *_: "ann") as r:
            assert await status(r, ELSEWHERE) == 200


def who(request: Any, route: Any) -> str:
    return request.query_params["who"]


class TestConnectionIds:
    async def test_another_principal_with_the_same_id_does_not_silence_a_tab(self):
        async with room("Hello", auth=who) as r:
            ann = await r.tab("same", who="ann")
            mallory = await r.tab("same", who="mallory")
            await mallory.ask("hi")
            assert (await mallory.stream()).text == "Hello"
            shown = await ann.until("chat_messages")
            assert shown["messages"][0]["id"] == "u-q1"
            await mallory.close()
            await r.agent.set_state({"n": 1})
            await ann.until("state", state={"n": 1})

    async def test_the_same_principal_takes_its_place_again(self):
        async with room(auth=who) as r:
            old = await r.tab("same", who="ann")
            new = await r.tab("same", who="ann")
            await r.agent.set_state({"n": 1})
            await new.expect("state", state={"n": 1})
            assert "state" not in [f["type"] for f in await old.before_now()]


class Clumsy(Chat, name="chat"):
    @tool
    async def breaks(self) -> str:
        """Fails with something private."""
        raise RuntimeError("password=hunter2")

    @tool
    async def explains(self) -> str:
        """Fails with something for the model."""
        raise ToolError("no such city")


class Open(Clumsy, name="chat"):
    expose_errors = True


class TestToolErrors:
    @pytest.mark.parametrize(
        ("cls", "name", "text"),
        [
            (Clumsy, "breaks", "The tool failed."),
            (Clumsy, "explains", "no such city"),
            (Open, "breaks", "password=hunter2"),
        ],
    )
    async def test_what_clients_and_model_read(
        self, cls: Any, name: str, text: str, caplog: pytest.LogCaptureFixture
    ):
        with caplog.at_level(logging.WARNING):
            async with room([call(name)], "sorry", cls=cls) as r:
                tab = await r.tab()
                await tab.ask("go")
                stream = await tab.stream()
                (failed,) = [c for c in stream.chunks if c["type"] == "tool-output-error"]
                assert failed["errorText"] == text
                assert part_of((await r.messages())[1])["errorText"] == text
                assert ("hunter2" in str(r.model.requests[1].messages)) is (cls is Open)
        logged = "hunter2" in caplog.text
        assert logged is (name == "breaks")
