"""Limits of models: who waits, in which order, how it shows, and what ends it (DESIGN §4, §9).

All of it waits for states: the model stands at a gate, the bus tells of a wait, a clock that the
test holds fills the buckets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.turns.support import Client, Log
from thinkwell import App, ModelLimits, Principal, Think, TurnConfig
from thinkwell.core.bus_event import BusEvent
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ConfigurationError, ModelError
from thinkwell.core.signal import AbortController, AbortSignal
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.messages.usage import Usage
from thinkwell.models import (
    Failure,
    Finish,
    ModelEvent,
    ModelRequest,
    OpenAIChatModel,
    TextDelta,
    TextEnd,
    TextStart,
)
from thinkwell.models.fallback import FallbackModel
from thinkwell.models.gate import ModelGate, ModelWait, current_caller, open_stream
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.sqlite import SqliteStore
from thinkwell.wire.http import HttpRequest

FRAME = "thinkwell_model_waiting"


class Doorkeeper:
    """A model whose calls stand at a door until the test lets them go on, one by one."""

    provider, limit_key = "door", ""

    def __init__(self, model_id: str = "m", *, opened: bool = False) -> None:
        self.model_id = model_id
        self.asked: list[str] = []
        self.inside = 0
        self.most = 0
        self._news = asyncio.Event()
        self._let = asyncio.Semaphore(1_000_000 if opened else 0)

    def let(self, calls: int = 1) -> None:
        for _ in range(calls):
            self._let.release()

    async def until_asked(self, times: int) -> None:
        while len(self.asked) < times:
            self._news.clear()
            await self._news.wait()

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        last = cast("UserMessage", request.messages[-1]).content[0]
        self.asked.append(cast("TextContent", last).text)
        self.inside += 1
        self.most = max(self.most, self.inside)
        self._news.set()
        try:
            await self._let.acquire()
            for event in said("well"):
                yield event
        finally:
            self.inside -= 1


def said(text: str, **finish: Any) -> list[ModelEvent]:
    return [
        TextStart("t"),
        TextDelta("t", text),
        TextEnd("t"),
        Finish(reason="stop", **finish),
    ]


class Clerk(Think):
    pass


class Events:
    """What the bus has told, and a way to wait for it."""

    def __init__(self, app: App) -> None:
        self.all: list[BusEvent] = []
        self._news = asyncio.Event()
        app.events.subscribe(self._take)

    def _take(self, event: BusEvent) -> None:
        self.all.append(event)
        self._news.set()

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.all if event.type == kind]

    async def until(self, kind: str, count: int = 1) -> list[Any]:
        while len(self.of(kind)) < count:
            self._news.clear()
            await self._news.wait()
        return self.of(kind)


def app_of(tmp_path: Path, model: Any, **limits: Any) -> App:
    class Served(Clerk, name="clerk"):
        pass

    Served.model = model
    given = limits.pop("model_limits", None) or {"door:*": ModelLimits(**limits)}
    return App(agents=[Served], store=f"sqlite:///{tmp_path}/x.db", model_limits=given)


async def connect(app: App, name: str, who: str | None = None, tab: str = "tab") -> Client:
    client = Client(Log())
    principal = None if who is None else Principal(id=who)
    client.connection = await app.client.open_connection(
        AgentAddress("clerk", name),
        f"{tab}-{name}",
        HttpRequest(method="GET", path="", principal=principal),
        client.sink,
    )
    return client


def waits(client: Client) -> list[bool]:
    return [frame["waiting"] for frame in client.frames if frame["type"] == FRAME]


class TestFairness:
    async def test_two_hundred_waiting_turns_of_two_people_are_served_in_turn(self, tmp_path: Path):
        """Round robin between principals, first come first served within one."""
        model = Doorkeeper()
        async with app_of(tmp_path, model, parallel=1) as app:
            events = Events(app)
            holder = await connect(app, "holder", "zoe")
            await holder.ask("first")
            await model.until_asked(1)
            clients = [await connect(app, f"greedy-{n}", "ann") for n in range(150)]
            clients += [await connect(app, f"modest-{n}", "bob") for n in range(50)]
            for n, client in enumerate(clients):
                who = f"ann {n}" if n < 150 else f"bob {n - 150}"
                await client.ask(who, f"q-{n}")
                await events.until(
                    "model:waiting", n + 1
                )  # the order of the line is that of asking
            model.let(201)
            for n, client in enumerate(clients):
                await client.until_end(f"q-{n}")
        mixed = [text for n in range(50) for text in (f"ann {n}", f"bob {n}")]
        assert model.asked == ["first", *mixed, *(f"ann {n}" for n in range(50, 150))]
        assert model.most == 1
        assert len(events.of("model:admitted")) == 200

    async def test_agents_without_a_principal_count_one_by_one(self, tmp_path: Path):
        model = Doorkeeper()
        async with app_of(tmp_path, model, parallel=1) as app:
            events = Events(app)
            first = asyncio.create_task(app.agent("clerk", "holder").run("first"))
            await model.until_asked(1)
            tasks = [first]
            for n, (name, text) in enumerate((("a", "a1"), ("b", "b1"))):
                tasks.append(asyncio.create_task(app.agent("clerk", name).run(text)))
                await events.until("model:waiting", n + 1)
            model.let(3)
            await asyncio.gather(*tasks)
        assert model.asked == ["first", "a1", "b1"]
        assert {event.agent for event in events.of("model:waiting")} == {"clerk/a", "clerk/b"}


class TestItShows:
    async def test_a_wait_is_told_on_the_bus_to_clients_and_in_the_journal(self, tmp_path: Path):
        model = Doorkeeper()
        async with app_of(tmp_path, model, parallel=1) as app:
            events = Events(app)
            holder, client = await connect(app, "holder"), await connect(app, "x")
            await holder.ask("first")
            await model.until_asked(1)
            await client.ask("second", "q2")
            (waiting,) = await events.until("model:waiting")
            assert waiting.agent == "clerk/x"
            assert (waiting.request_id, waiting.model, waiting.limit) == ("q2", "door:m", "door:*")
            assert (waiting.reason, waiting.ahead) == ("parallel", 0)
            assert waits(client) == [True]
            late = await connect(app, "x", tab="late")  # whoever connects now is told too
            assert waits(late) == [True]
            model.let(2)
            await client.until_end("q2")
            assert waits(client) == waits(late) == [True, False]
            (admitted,) = events.of("model:admitted")
            assert admitted.waited_ms >= 0
            assert waits(holder) == []
            story = await app.turns.show("q2")
            (use,) = story.steps[0].models
            assert use.waits_for is None
            assert use.waited == admitted.waited_ms / 1000

    async def test_turns_show_says_that_a_turn_waits(self, tmp_path: Path):
        model = Doorkeeper()
        async with app_of(tmp_path, model, parallel=1) as app:
            events = Events(app)
            holder, client = await connect(app, "holder"), await connect(app, "x")
            await holder.ask("first")
            await model.until_asked(1)
            await client.ask("second", "q2")
            await events.until("model:waiting")
            while not (story := await app.turns.show("q2")).steps:  # it comes with the next commit
                await asyncio.sleep(0)
            (use,) = story.steps[0].models
            assert use.waits_for == "door:* (parallel)"
            model.let(2)
            await client.until_end("q2")

    async def test_metrics_count_who_waits_and_for_how_long(self, tmp_path: Path):
        model = Doorkeeper()
        async with app_of(tmp_path, model, parallel=1) as app:
            events = Events(app)
            holder, client = await connect(app, "holder"), await connect(app, "x")
            await holder.ask("first")
            await model.until_asked(1)
            await client.ask("second", "q2")
            await events.until("model:waiting")
            page = await metrics_of(app)
            assert 'thinkwell_model_calls_waiting{limit="door:*"} 1' in page
            assert 'thinkwell_model_calls_running{limit="door:*"} 1' in page
            model.let(2)
            await client.until_end("q2")
            page = await metrics_of(app)
            assert 'thinkwell_model_calls_waiting{limit="door:*"} 0' in page
            assert 'thinkwell_model_wait_seconds_count{limit="door:*"} 1' in page

    async def test_an_app_without_limits_says_nothing_of_them(self, tmp_path: Path):
        app = App(agents=[Clerk], store=f"sqlite:///{tmp_path}/x.db")
        async with app:
            assert "thinkwell_model_" not in await metrics_of(app)


async def metrics_of(app: App) -> str:
    counters, edge = cast("Any", app)._counters, cast("Any", app)._edge
    return await counters.page(edge)


class TestItEnds:
    async def test_a_stop_ends_a_wait_at_once_and_the_next_one_moves_up(self, tmp_path: Path):
        model = Doorkeeper()
        async with app_of(tmp_path, model, parallel=1) as app:
            events = Events(app)
            clients = [await connect(app, name) for name in ("holder", "x", "y")]
            await clients[0].ask("first")
            await model.until_asked(1)
            await clients[1].ask("second", "q2")
            await events.until("model:waiting", 1)
            await clients[2].ask("third", "q3")
            await events.until("model:waiting", 2)
            await clients[1].send(type="cf_agent_chat_request_cancel", id="q2")
            await clients[1].until_end("q2")
            assert waits(clients[1]) == [True, False]
            model.let(2)
            await clients[2].until_end("q3")
        assert model.asked == ["first", "third"]
        assert len(events.of("model:admitted")) == 1

    async def test_a_deploy_waits_for_what_runs_and_not_for_what_waits(self, tmp_path: Path):
        """The turn that waits is found by the next process, and waits and answers there."""
        model = Doorkeeper()
        app = app_of(tmp_path, model, parallel=1)
        async with app:
            events = Events(app)
            holder, client = await connect(app, "holder"), await connect(app, "x")
            await holder.ask("first")
            await model.until_asked(1)
            await client.ask("second", "q2")
            await events.until("model:waiting")
            drain = asyncio.create_task(app.drain())
            model.let(1)
            await holder.until_end()
            await drain  # long before its time is up: nobody waits for q2
            assert model.asked == ["first"]
        opened = Doorkeeper(opened=True)
        async with app_of(tmp_path, opened, parallel=1) as after:
            result = await after.agent("clerk", "x").run("third")
            assert result.status == "completed"
        assert opened.asked == ["second", "third"]

    async def test_a_superseded_turn_leaves_the_line(self, tmp_path: Path):
        model = Doorkeeper()
        app = app_of(tmp_path, model, parallel=1)
        cast("Any", app.agents[0]).message_concurrency = "latest"
        async with app:
            events = Events(app)
            holder, client = await connect(app, "holder"), await connect(app, "x")
            await holder.ask("first")
            await model.until_asked(1)
            await client.ask("second", "q2")
            await events.until("model:waiting")
            await client.ask("third", "q3")
            await events.until("chat:turn:start", 2)
            model.let(3)
            await client.until_end("q3")
        assert model.asked[-1] == "third"


class TestTimeLimits:
    async def test_a_wait_counts_for_no_limit_of_the_call(self, tmp_path: Path):
        """Another turn with the same limits begins later and fails by them; this one waits."""
        model, silent = Doorkeeper(), Doorkeeper("silent")

        class Hurried(Think, name="clerk"):
            def get_model(self) -> Any:
                return silent if self.name == "late" else model

            def before_turn(self, ctx: Any) -> TurnConfig | None:
                if self.name == "holder":
                    return None
                return TurnConfig(timeout={"first_chunk": 0.1, "step": 0.2}, max_retries=0)

        limits = {"door:m": ModelLimits(parallel=1)}
        app = App(agents=[Hurried], store=f"sqlite:///{tmp_path}/x.db", model_limits=limits)
        async with app:
            events = Events(app)
            holder, client = await connect(app, "holder"), await connect(app, "x")
            await holder.ask("first")
            await model.until_asked(1)
            await client.ask("second", "q2")
            await events.until("model:waiting")
            result = await app.agent("clerk", "late").run("third")
            assert result.status == "error"
            assert "silent for too long" in str(result.error)
            model.let(2)
            await client.until_end("q2")
            assert client.ends("q2")[0].get("error") is None

    async def test_the_limits_hold_once_the_model_is_called(self, tmp_path: Path):
        model = Doorkeeper()

        class Hurried(Think, name="clerk"):
            def before_turn(self, ctx: Any) -> TurnConfig | None:
                if self.name == "holder":
                    return None
                return TurnConfig(timeout={"first_chunk": 0.05}, max_retries=0)

        Hurried.model = model
        limits = {"door:m": ModelLimits(parallel=1)}
        app = App(agents=[Hurried], store=f"sqlite:///{tmp_path}/x.db", model_limits=limits)
        async with app:
            events = Events(app)
            holder, client = await connect(app, "holder"), await connect(app, "x")
            await holder.ask("first")
            await model.until_asked(1)
            await client.ask("second", "q2")
            await events.until("model:waiting")
            model.let(1)
            await model.until_asked(2)
            await client.until_end("q2")
            (ended,) = [e for e in await events.until("chat:turn:finish", 2) if e.error]
            assert "silent for too long" in str(ended.error)


class FakeTime(SystemClock):
    """A clock and an alarm that move when the test says so."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.alarms: list[tuple[float, Callable[[], None], list[bool]]] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def alarm(self, seconds: float, call: Callable[[], None]) -> Any:
        alive = [True]
        self.alarms.append((self.time + seconds, call, alive))

        class Handle:
            def cancel(self) -> None:
                alive[0] = False

        return Handle()

    def move(self, seconds: float) -> None:
        self.time += seconds
        due = [alarm for alarm in self.alarms if alarm[0] <= self.time + 1e-9]
        self.alarms = [alarm for alarm in self.alarms if alarm not in due]
        for _, call, alive in due:
            if alive[0]:
                call()


class Someone:
    """A caller without a turn."""

    def __init__(self, gate: ModelGate, who: str = "ann") -> None:
        self.gate, self.who = gate, who
        self.waits: list[ModelWait] = []
        self.told: list[str] = []
        self.waiting_now = asyncio.Event()

    async def waiting(self, wait: ModelWait) -> None:
        self.waits.append(wait)
        self.waiting_now.set()

    async def admitted(self, wait: ModelWait, seconds: float) -> None:
        self.told.append(f"admitted after {seconds:g}")

    def left(self, wait: ModelWait) -> None:
        self.told.append("left")

    async def call(
        self, model: Any, text: str = "hello", signal: AbortSignal | None = None
    ) -> list[ModelEvent]:
        current_caller.set(self)
        request = ModelRequest(messages=(UserMessage(content=(TextContent(text),)),))
        stream = open_stream(model, request, signal or AbortController().signal)
        return [event async for event in stream]


class Answers:
    """A model that answers at once, in the order of its script."""

    def __init__(self, *answers: Any, name: str = "m", key: str = "") -> None:
        self.provider, self.model_id, self.limit_key = "fast", name, key
        self.calls = 0
        self._answers = list(answers)

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        self.calls += 1
        answer = self._answers.pop(0) if self._answers else said("yes")
        if isinstance(answer, Exception):
            yield Failure(answer)
            return
        for event in answer:
            yield event


def limited(time: FakeTime, pattern: str = "fast:*", **fields: Any) -> ModelGate:
    return ModelGate({pattern: ModelLimits(**fields)}, time, alarm=time.alarm)


class TestTheGate:
    async def test_what_may_begin_makes_no_task_and_no_timer(self):
        time = FakeTime()
        gate = limited(time, parallel=1, requests_per_minute=10)
        someone = Someone(gate)
        before = len(asyncio.all_tasks())
        events = await someone.call(Answers())
        assert isinstance(events[-1], Finish)
        assert len(asyncio.all_tasks()) == before
        assert someone.waits == []
        assert time.alarms == []

    async def test_a_model_that_no_pattern_matches_is_called_as_ever(self):
        gate = limited(FakeTime(), "other:*", parallel=1)
        someone, model = Someone(gate), Answers()
        stream = gate.stream(
            someone, model, ModelRequest(messages=()), signal=AbortController().signal
        )
        assert stream.__qualname__ == "Answers.stream"  # type: ignore[attr-defined]

    async def test_the_bucket_of_requests_lets_the_next_through_when_it_is_time(self):
        time = FakeTime()
        gate, model = limited(time, requests_per_minute=6), Answers()
        first = Someone(gate)
        for _ in range(6):
            await first.call(model)
        second = Someone(gate)
        task = asyncio.create_task(second.call(model))
        await second.waiting_now.wait()
        assert second.waits[0].reason == "requests"
        time.move(9.0)
        assert model.calls == 6
        time.move(1.0)
        await task
        assert (model.calls, second.told) == (7, ["admitted after 10"])

    async def test_tokens_are_counted_as_the_provider_says(self):
        time = FakeTime()
        gate = limited(time, tokens_per_minute=600)
        model = Answers(said("a", usage=Usage(input_tokens=500, output_tokens=400)))
        await Someone(gate).call(model)
        second = Someone(gate)
        task = asyncio.create_task(second.call(model, "x" * 40))
        await second.waiting_now.wait()
        assert second.waits[0].reason == "tokens"
        time.move(31.0)  # 300 below nothing, and 10 are needed
        await task

    async def test_models_of_one_pattern_do_not_wait_for_one_another(self):
        gate, door = ModelGate({"*": ModelLimits(parallel=1)}, SystemClock()), Doorkeeper()
        held = asyncio.create_task(Someone(gate).call(door))
        await door.until_asked(1)
        await Someone(gate).call(Answers())
        await Someone(gate).call(Doorkeeper("n", opened=True))
        door.let()
        await held

    async def test_models_that_share_a_key_wait_for_one_another_and_other_keys_do_not(self):
        gate = ModelGate({"*": ModelLimits(parallel=1, per="key")}, SystemClock())
        door = Doorkeeper()
        held = asyncio.create_task(Someone(gate).call(door))
        await door.until_asked(1)
        await Someone(gate).call(Answers(key="another"))
        await Someone(gate).call(Answers())  # another provider has another key
        other = Someone(gate)
        task = asyncio.create_task(other.call(Answers(key="door")))
        await other.waiting_now.wait()
        door.let()
        await asyncio.gather(held, task)

    async def test_whoever_waits_for_a_key_holds_no_model_up(self):
        """The limit of the model is passed first, whatever the order in the mapping."""
        limits = {"*": ModelLimits(parallel=2, per="key"), "door:m": ModelLimits(parallel=1)}
        gate, m, n = ModelGate(limits, SystemClock()), Doorkeeper(), Doorkeeper("n")
        first = asyncio.create_task(Someone(gate).call(m))
        await m.until_asked(1)
        second = Someone(gate)
        waiting = asyncio.create_task(second.call(m))
        await second.waiting_now.wait()
        third = asyncio.create_task(Someone(gate).call(n))
        await n.until_asked(1)  # the second slot of the key is still free
        assert second.waits[0].limit == "door:m"
        m.let(2)
        n.let()
        await asyncio.gather(first, waiting, third)

    async def test_an_abort_ends_the_wait_and_the_stream(self):
        gate, door = ModelGate({"*": ModelLimits(parallel=1)}, SystemClock()), Doorkeeper()
        held = asyncio.create_task(Someone(gate).call(door))
        await door.until_asked(1)
        someone, stop = Someone(gate), AbortController()
        task = asyncio.create_task(someone.call(door, signal=stop.signal))
        await someone.waiting_now.wait()
        stop.abort()
        assert await task == []
        assert someone.told == ["left"]
        assert gate.figures()[0].waiting == 0
        door.let()
        await held

    async def test_a_cancel_in_the_moment_of_admission_gives_the_slot_back(self):
        gate, door = ModelGate({"*": ModelLimits(parallel=1)}, SystemClock()), Doorkeeper()
        held = asyncio.create_task(Someone(gate).call(door))
        await door.until_asked(1)
        someone = Someone(gate)
        task = asyncio.create_task(someone.call(door))
        await someone.waiting_now.wait()
        held.cancel()
        while gate.figures()[0].waiting:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert gate.figures()[0].running == 0
        await Someone(gate).call(Answers())

    async def test_a_closed_gate_lets_nobody_through_who_waits(self):
        time = FakeTime()
        gate, model = limited(time, requests_per_minute=1), Answers()
        await Someone(gate).call(model)
        someone = Someone(gate)
        task = asyncio.create_task(someone.call(model))
        await someone.waiting_now.wait()
        gate.close()
        time.move(3600)
        assert model.calls == 1
        task.cancel()
        await asyncio.wait([task])

    async def test_lanes_that_nobody_uses_are_forgotten(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("thinkwell.models.gate.MOST_LANES", 3)
        gate = ModelGate({"*": ModelLimits(parallel=1)}, SystemClock())
        for n in range(20):
            await Someone(gate).call(Answers(key=str(n)))
        assert len(cast("Any", gate)._lanes) <= 3


def test_the_same_key_at_the_same_address_is_one_key_whatever_else_is_sent():
    def key(api_key: str, **more: Any) -> str:
        return OpenAIChatModel("m", api_key=api_key, **more).limit_key

    assert key("a") == key("a", headers={"X-Team": "blue"})
    assert key("a") != key("b")
    assert key("a") != key("a", base_url="https://elsewhere.example")
    assert "secret" not in key("secret")


class TestProvidersLimits:
    async def test_a_429_pauses_the_key_for_everybody(self):
        time = FakeTime()
        gate = limited(time)
        refusal = ModelError("slow down", status=429, retryable=True, retry_after=20.0)
        model = Answers(refusal)
        await Someone(gate).call(model)
        others = [Someone(gate, f"p{n}") for n in range(3)]
        tasks = [asyncio.create_task(each.call(model)) for each in others]
        for each in others:
            await each.waiting_now.wait()
            assert each.waits[0].reason in ("provider", "turn")
        await Someone(gate).call(Answers(key="another"))  # another key goes on
        time.move(19.0)
        assert model.calls == 1
        time.move(1.0)
        await asyncio.gather(*tasks)
        assert model.calls == 4

    async def test_one_call_goes_ahead_after_the_pause_and_the_others_follow_its_answer(self):
        time, door = FakeTime(), Doorkeeper()
        gate = limited(time, "door:*")
        (lane,) = cast("Any", gate)._lanes_of(door)
        lane.refused(5.0)
        others = [Someone(gate, f"p{n}") for n in range(3)]
        tasks = [asyncio.create_task(each.call(door)) for each in others]
        for each in others:
            await each.waiting_now.wait()
        time.move(5.0)
        await door.until_asked(1)
        assert gate.figures()[0].waiting == 2
        door.let(1)
        await door.until_asked(3)
        door.let(2)
        await asyncio.gather(*tasks)

    async def test_headers_that_say_nothing_is_left_pause_the_key(self):
        time = FakeTime()
        gate = limited(time)
        spent = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12s"}
        model = Answers(said("a", headers=spent))
        await Someone(gate).call(model)
        someone = Someone(gate)
        task = asyncio.create_task(someone.call(model))
        await someone.waiting_now.wait()
        assert someone.waits[0].reason == "provider"
        time.move(12.0)
        await task


class TestChains:
    async def test_a_full_model_makes_room_for_the_next_one_if_asked(self):
        limits = {"door:*": ModelLimits(parallel=1, when_full="next")}
        gate, door = ModelGate(limits, SystemClock()), Doorkeeper()
        chain = FallbackModel([door, Answers(said("second"))])
        held = asyncio.create_task(Someone(gate).call(door))
        await door.until_asked(1)
        events = await Someone(gate).call(chain)
        finish = cast("Finish", events[-1])
        assert "no free slot" in finish.warnings[0]
        assert 'when_full="next"' in finish.warnings[0]
        door.let(2)
        await held
        await Someone(gate).call(chain)  # it did not fail: it is asked first again
        assert len(door.asked) == 2

    async def test_the_last_model_of_a_chain_waits(self):
        limits = {"door:*": ModelLimits(parallel=1, when_full="next")}
        gate, door = ModelGate(limits, SystemClock()), Doorkeeper()
        held = asyncio.create_task(Someone(gate).call(door))
        await door.until_asked(1)
        someone = Someone(gate)
        task = asyncio.create_task(someone.call(FallbackModel([door])))
        await someone.waiting_now.wait()
        door.let(2)
        await asyncio.gather(held, task)

    async def test_a_chain_waits_for_its_first_model_by_default(self):
        gate, door = ModelGate({"door:*": ModelLimits(parallel=1)}, SystemClock()), Doorkeeper()
        spare = Answers()
        held = asyncio.create_task(Someone(gate).call(door))
        await door.until_asked(1)
        someone = Someone(gate)
        task = asyncio.create_task(someone.call(FallbackModel([door, spare])))
        await someone.waiting_now.wait()
        door.let(2)
        await asyncio.gather(held, task)
        assert spare.calls == 0

    async def test_a_full_model_fails_if_asked_and_the_turn_says_which_limit(self, tmp_path: Path):
        model = Doorkeeper()
        async with app_of(tmp_path, model, parallel=1, when_full="error") as app:
            holder = await connect(app, "holder")
            await holder.ask("first")
            await model.until_asked(1)
            result = await app.agent("clerk", "x").run("second")
            assert result.status == "error"
            assert "door:m has no free slot (too many calls run at once)" in str(result.error)
            model.let()
            await holder.until_end()


async def life(folder: Path, number: int) -> None:
    """One life of the process, in which a turn only waits, and its death."""
    full, model = Doorkeeper("full"), Doorkeeper()

    class Served(Clerk, name="clerk"):
        pass

    Served.model = model
    limits = {"*": ModelLimits(parallel=1, per="key")}
    store = SqliteStore(folder / f"{number}.db")
    host = Host([Served], store, model_limits=limits, drain_timeout=0.0)
    gate = cast("Any", host)._shared.gate
    held = asyncio.create_task(Someone(gate).call(full))
    await full.until_asked(1)
    waiting = asyncio.Event()
    host.bus.subscribe(lambda e: waiting.set() if e.type == "model:waiting" else None)
    await host.start()
    if number == 0:
        agent = (await host.agent(AgentAddress("clerk", "x"))).agent
        await cast("Any", agent).submit("hello", idempotency_key="k")
    await waiting.wait()
    if number:
        while "waiting" not in await _places(store):
            await asyncio.sleep(0)
    with ReadOnlySqlite(folder / f"{number}.db") as left:
        left.copy_to(folder / f"{number + 1}.db")
    held.cancel()
    await host.stop()
    assert model.asked == []


async def _places(store: SqliteStore) -> str:
    (row,) = await store.fetch_in_background("unsettled_turns", {"agent": "clerk/x"})
    return str(row["incident"])


async def test_a_turn_that_waits_when_its_process_dies_is_never_blamed_for_it(tmp_path: Path):
    """DESIGN §8.16: three deaths in a row at one place would park it. Here are six."""
    for number in range(6):
        await life(tmp_path, number)
    model = Doorkeeper(opened=True)
    app = app_of(tmp_path, model, parallel=1)
    app.store = f"sqlite:///{tmp_path}/6.db"
    async with app:
        (turn,) = await app.turns.list()
        assert (await app.turns.wait(turn.request_id)).status == "completed"
    assert model.asked == ["hello"]


class TestWhatIsNoPattern:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (ModelLimits(), "says not which models"),
            ({"openai": ModelLimits()}, "matches no model"),
            ({"openai:*": 5}, "has no ModelLimits there"),
        ],
    )
    def test_the_error_shows_the_right_call(self, given: Any, said: str):
        with pytest.raises(ConfigurationError, match=said) as caught:
            App(agents=[Clerk], model_limits=given)
        assert 'App(model_limits={"openai:*": ModelLimits(parallel=8)})' in str(caught.value)
