"""`/metrics`: what it counts, what it says of nobody, and who may read it (spec/04 §17)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.operate.canary import ask, who
from tests.unit.server.fakes import AsgiClient
from tests.wire.serving import serving
from thinkwell import App, Think
from thinkwell.errors import ConfigurationError, StoreError
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, pause

LINE = re.compile(
    r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\.)*"(,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? [-+0-9.eInf]+'
)


class Clerk(Think):
    model: Any = ScriptedModel([])

    def get_model(self) -> Any:
        return self.model

    async def fails(self) -> None:
        """A job."""
        raise OSError("no")

    async def works(self) -> None:
        """A job."""


def app_on(path: Path, *replies: Any, **options: Any) -> App:
    Clerk.model = ScriptedModel(list(replies))
    return App(agents=[Clerk], store=f"sqlite:///{path / 'a.db'}", **options)


async def scrape(url: str, **headers: str) -> tuple[int, dict[str, float]]:
    async with aiohttp.ClientSession() as web:
        answer = await web.get(f"{url}/metrics", headers=headers)
        text = await answer.text()
    if answer.status != 200:
        return answer.status, {}
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return 200, {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def figures(url: str, **headers: str) -> dict[str, float]:
    status, found = await scrape(url, **headers)
    assert status == 200
    return found


class TestWhatItCounts:
    async def test_turns_chunks_commits_sockets_and_the_store(self, tmp_path: Path):
        app = app_on(tmp_path, "One.", OSError("the model is down"))
        async with serving(app) as url:
            before = await figures(url)
            assert before['thinkwell_turns_total{agent_class="clerk",status="completed"}'] == 0
            await ask(url, "clerk/ann", "ann", "hello")
            await ask(url, "clerk/bob", "bob", "hello")
            room = f"{url}/agents/clerk/ann"
            async with aiohttp.ClientSession() as web, web.ws_connect(room) as socket:
                await socket.receive()
                now = await figures(url)
        assert now['thinkwell_turns_total{agent_class="clerk",status="completed"}'] == 1
        assert now['thinkwell_turns_total{agent_class="clerk",status="error"}'] == 1
        assert now['thinkwell_turn_seconds_count{agent_class="clerk"}'] == 2
        assert now["thinkwell_chunks_total"] > 4
        assert now["thinkwell_chunk_lag_seconds_count"] >= 1
        assert (
            now['thinkwell_chunk_lag_seconds_bucket{le="+Inf"}']
            == (now["thinkwell_chunk_lag_seconds_count"])
        )
        commits = now["thinkwell_commit_seconds_count"]
        assert commits > before["thinkwell_commit_seconds_count"]
        assert now["thinkwell_open_sockets"] == 1
        assert now['thinkwell_agents_awake{agent_class="clerk"}'] == 2
        assert now['thinkwell_store_bytes{file="database"}'] > 0
        assert now['thinkwell_store_bytes{file="log"}'] > 0
        assert now["thinkwell_ready"] == 1

    async def test_turns_that_run_and_wait(self, tmp_path: Path):
        app = app_on(tmp_path, [pause()], "Two.")
        async with serving(app) as url:
            clerk = app.agent(Clerk, "ann")
            await clerk.submit("first")
            await clerk.submit("second")
            while (now := await figures(url))["thinkwell_turns_running"] != 1:
                await asyncio.sleep(0)
            assert now["thinkwell_turns_waiting"] == 1
            await app.stop_turns()

    async def test_jobs_by_outcome_and_those_that_are_due(self, tmp_path: Path):
        ended = asyncio.Queue[Any]()
        app = app_on(tmp_path)
        app.events.subscribe(ended.put_nowait, "job:finished", "job:failed")
        async with serving(app) as url:
            clerk = app.agent(Clerk, "ann")
            await clerk.jobs.enqueue("works")
            await clerk.jobs.enqueue("fails", max_attempts=1)
            await ended.get()
            await ended.get()
            await app.pause(Clerk, "ann")
            await clerk.jobs.enqueue("works")
            now = await figures(url)
        assert now['thinkwell_jobs_total{agent_class="clerk",outcome="finished"}'] == 1
        assert now['thinkwell_jobs_total{agent_class="clerk",outcome="failed"}'] == 1
        assert now["thinkwell_jobs_due"] == 1

    async def test_recoveries_after_a_planned_stop(self, tmp_path: Path):
        app = app_on(tmp_path, [pause()], drain_timeout=0)
        async with app:
            started = asyncio.Event()
            app.events.subscribe(lambda _: started.set(), "chat:turn:start")
            await app.agent(Clerk, "ann").submit("hello")
            await started.wait()
        again = app_on(tmp_path, "Done.")
        done = asyncio.Event()
        again.events.subscribe(lambda _: done.set(), "chat:recovery:completed")
        async with serving(again) as url:
            await done.wait()
            now = await figures(url)
        assert now['thinkwell_recoveries_total{agent_class="clerk",event="completed"}'] == 1

    async def test_neither_an_agent_nor_a_person_is_named(self, tmp_path: Path):
        app = app_on(tmp_path, *["Hello."] * 20, auth=who)
        async with serving(app) as url:
            few = await figures(url, **{"x-user": "ann"})
            await ask(url, "clerk/private-room", "canary", "hello")
            some = await figures(url, **{"x-user": "ann"})
            for number in range(10):
                await ask(url, f"clerk/room-{number}", f"guest-{number}", "hello")
            many = await figures(url, **{"x-user": "ann"})
        assert set(some) == set(many)
        new = set(many) - set(few)  # the class that is awake by now, and the model that was asked
        assert all('agent_class="clerk"' in name or 'model="scripted' in name for name in new), new
        assert not re.search("private-room|canary|guest-|room-", str(many))

    async def test_no_event_is_made_for_the_counters(self, tmp_path: Path):
        app = app_on(tmp_path, "One.")
        async with app:
            assert not app.events.heard
            await app.agent(Clerk, "ann").run("hello")
            assert not app.events.heard


class TestWhoMayRead:
    async def local(self, app: App, client: str = "127.0.0.1", **headers: str) -> int:
        call = AsgiClient("http", "/metrics", headers={"host": "localhost", **headers})
        call.scope["client"] = (client, 5000)
        await app(*call.call)
        return (await call.response())[0]

    async def test_without_auth_this_machine_and_no_one_else(self, tmp_path: Path):
        async with app_on(tmp_path) as app:
            assert await self.local(app) == 200
            assert await self.local(app, "::1") == 200
            assert await self.local(app, "10.0.0.7") == 404  # the host header is forged
            assert await self.local(app, **{"x-forwarded-for": "10.0.0.7"}) == 404
            assert await self.local(app, forwarded="for=10.0.0.7") == 404
            assert await self.local(app, host="evil.example") == 400

    @pytest.mark.parametrize("hosts", [["*"], ["chat.example.com", "localhost"]])
    async def test_without_auth_nobody_once_the_app_answers_to_other_names(
        self, tmp_path: Path, hosts: list[str]
    ):
        async with app_on(tmp_path, allowed_hosts=hosts) as app:
            assert await self.local(app) == 404

    async def test_with_auth_whoever_it_admits(self, tmp_path: Path):
        asked: list[Any] = []

        def auth(request: Any, route: Any) -> Any:
            asked.append((route.class_name, route.name, route.tail))
            return who(request, route)

        async with serving(app_on(tmp_path, auth=auth)) as url:
            assert (await scrape(url))[0] == 401
            assert (await scrape(url, **{"x-user": "ann"}))[0] == 200
        assert asked == [("", "", "metrics")] * 2

    async def test_false_keeps_none_and_hides_the_page(self, tmp_path: Path):
        async with serving(app_on(tmp_path, metrics=False)) as url:
            assert (await scrape(url))[0] == 404

    async def test_a_function_decides_by_itself(self, tmp_path: Path):
        async def key(request: Any) -> bool:
            return request.headers.get("x-key") == "k"

        async with serving(app_on(tmp_path, metrics=key, auth=who)) as url:
            assert (await scrape(url, **{"x-user": "ann"}))[0] == 404
            assert (await scrape(url, **{"x-key": "k"}))[0] == 200

    async def test_a_function_that_fails_or_answers_something_else_lets_nobody_in(
        self, tmp_path: Path
    ):
        async with serving(app_on(tmp_path, metrics=lambda _: "yes")) as url:
            assert (await scrape(url))[0] == 500

    @pytest.mark.parametrize("wrong", ["yes", None, lambda: True])
    def test_what_is_no_setting_is_refused_with_the_right_call(self, tmp_path: Path, wrong: Any):
        with pytest.raises(ConfigurationError, match=r"App\(metrics=lambda request"):
            app_on(tmp_path, metrics=wrong)


async def test_a_store_that_cannot_be_read_hides_its_counts_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: Any) -> Any:
        raise StoreError("no")

    async with serving(app_on(tmp_path)) as url:
        monkeypatch.setattr(SqliteStore, "fetch_in_background", fail)
        now = await figures(url)
    assert "thinkwell_jobs_due" not in now
    assert now["thinkwell_ready"] == 1
