"""Tabs behind slow lines: at rest every accepted message and its answer are on the path, in order.

A Hypothesis state machine drives one to three tabs that behave like the npm hook (`tab.py`) against
a real server. Frames wait in both directions until a rule lets them through (`slow_wire.py`), so
questions cross answers, starts and each other; sockets drop and come back in between. DESIGN §8.13.

`LATENCY_EXAMPLES` in the environment sets how many runs are made, and makes them random.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.abuse.client_frames import Frame
from tests.abuse.room import SCRIPTS, Room, Script, shown, transcript, until
from tests.abuse.slow_wire import SlowWire
from tests.wire.serving import serving
from thinkwell import App

MORE = os.environ.get("LATENCY_EXAMPLES")
MAX_TABS = 3
EVERYTHING = 1_000_000
NAMES = count(1)
WHICH = st.integers(0, MAX_TABS - 1)
SOME = st.sampled_from([1, 2, 3, 5, EVERYTHING])


class SlowTabs(RuleBasedStateMachine):
    """Tabs of one conversation, each behind a slow line."""

    run: Any
    app: App
    url: str

    @initialize(tabs=st.integers(1, MAX_TABS))
    def begin(self, tabs: int) -> None:
        self.name = f"slow-{next(NAMES)}"
        self.script = SCRIPTS[self.name] = Script()
        self.agent = self.app.agent(Room, self.name)
        self.address = f"{self.url}/agents/room/{self.name}"
        self.asked = 0
        self.accepted: list[list[str]] = []
        """The new questions of each request, in the order the server read them."""
        self.tabs = [SlowWire(self.address, f"t{number}") for number in range(tabs)]
        for wire in self.tabs:
            self.run(wire.load())
            self.run(wire.open())
            wire.deliver_up(EVERYTHING)
            self.run(self._quiet())
            wire.deliver_down(EVERYTHING)  # nobody writes before the page is there

    @rule(which=WHICH)
    def send(self, which: int) -> None:
        self.asked += 1
        wire = self._tab(which)
        if not self.accepted:  # of an empty chat nobody can tell whether a client has read that
            wire.deliver_down(EVERYTHING)
        wire.tab.submit(f"question {self.asked}")

    @rule(which=WHICH, some=SOME)
    def deliver_up(self, which: int, some: int) -> None:
        wire = self._tab(which)
        for _ in range(min(some, len(wire.up))):
            self._count(wire.deliver_up(1))
            self.run(self._quiet())

    @rule(which=WHICH, some=SOME)
    def deliver_down(self, which: int, some: int) -> None:
        self._tab(which).deliver_down(some)

    @rule(times=st.integers(1, 4))
    def advance(self, times: int) -> None:
        for _ in range(times):
            self.script.advance()
            self.run(self._quiet())

    @rule(which=WHICH)
    def drop(self, which: int) -> None:
        self.run(self._tab(which).drop())

    @rule(which=WHICH)
    def reconnect(self, which: int) -> None:
        wire = self._tab(which)
        if not wire.online:
            self.run(wire.open())
            self.run(self._quiet())

    @rule()
    def rest(self) -> None:
        self.run(self._rest())

    def teardown(self) -> None:
        if hasattr(self, "tabs"):
            try:
                self.run(self._rest())
            finally:
                for wire in self.tabs:
                    self.run(wire.drop())
                del SCRIPTS[self.name]

    def _tab(self, which: int) -> SlowWire:
        return self.tabs[which % len(self.tabs)]

    def _count(self, frames: list[Frame]) -> None:
        """What the server accepts with these frames: all that it has not seen before."""
        for frame in frames:
            if frame["type"] == "cf_agent_use_chat_request":
                seen = {message_id for ids in self.accepted for message_id in ids}
                listed = json.loads(frame["init"]["body"])["messages"]
                ids = [m["id"] for m in listed if m["role"] == "user" and m["id"] not in seen]
                self.accepted.append(ids)

    async def _quiet(self) -> None:
        """Until the server has nothing to do: the model stands at a gate, or no turn runs."""
        await until(self._is_quiet, self._story)

    async def _is_quiet(self) -> bool:
        heard = sum(len(wire.down) for wire in self.tabs)
        for wire in self.tabs:
            await wire.settle()
        stands = self.script.held or await self.agent.is_idle()
        return stands and heard == sum(len(wire.down) for wire in self.tabs)

    async def _rest(self) -> None:
        self.script.release()
        for wire in self.tabs:
            if not wire.online:
                await wire.open()
        await until(self._is_at_rest, self._story)
        self.script.open = False
        stored = await transcript(self.address)
        self._check_path(stored)
        for wire in self.tabs:
            seen, expected = shown(self._accepted_of(wire.tab.messages)), shown(stored)
            assert seen == expected, f"{seen}\ninstead of\n{expected}\n{self._story()}"
            assert wire.tab.status == "ready", f"{wire.tab.error}\n{self._story()}"

    def _check_path(self, stored: list[dict[str, Any]]) -> None:
        """Each accepted request: its questions, then its answer, in the order of acceptance."""
        path = [None if m["role"] == "assistant" else m["id"] for m in stored]
        expected = [entry for ids in self.accepted for entry in (*ids, None)]
        assert path == expected, f"{path}\ninstead of\n{expected}\n{self._story()}"

    def _accepted_of(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Without questions that were lost under way: their tab still shows them."""
        accepted = {message_id for ids in self.accepted for message_id in ids}
        return [m for m in messages if m["role"] != "user" or m["id"] in accepted]

    async def _is_at_rest(self) -> bool:
        for wire in self.tabs:
            self._count(wire.deliver_up(EVERYTHING))
            await wire.settle()
            wire.deliver_down(EVERYTHING)
        under_way = any(wire.up or wire.down or wire.tab.waits for wire in self.tabs)
        return await self.agent.is_idle() and not under_way

    def _story(self) -> str:
        return "rest\n" + "\n".join(
            "\n".join([f"{wire.tab.name} is {wire.tab.status}, {wire.tab.waits}", *wire.log])
            for wire in self.tabs
        )


@contextmanager
def _machine(folder: Path) -> Iterator[type[SlowTabs]]:
    """The machine on a running server."""
    with asyncio.Runner() as runner:
        app = App(agents=[Room], store=f"sqlite:///{folder / 'slow.db'}")
        server = serving(app)
        url = runner.run(server.__aenter__())
        fields = {"run": staticmethod(runner.run), "app": app, "url": url}
        try:
            yield type("SlowTabs", (SlowTabs,), fields)
        finally:
            runner.run(server.__aexit__(None, None, None))


@pytest.mark.timeout(600 if MORE is None else 0)
def test_at_rest_every_accepted_message_and_its_answer_are_on_the_path_in_order(tmp_path: Path):
    profile = settings(
        derandomize=MORE is None,
        max_examples=int(MORE or 40),
        stateful_step_count=25,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    with _machine(tmp_path) as machine:
        run_state_machine_as_test(machine, settings=profile)


def test_joining_an_answer_too_late_does_not_break_the_one_that_streams_meanwhile(tmp_path: Path):
    """Spec/01 §10.4: clients fold one observed stream at a time, and a replay takes its place."""
    with _machine(tmp_path) as machine:
        room = machine()
        room.begin(tabs=2)
        room.send(0)
        room.deliver_up(0, EVERYTHING)
        room.drop(1)
        room.send(1)
        room.reconnect(1)
        room.deliver_down(1, EVERYTHING)  # it is offered the first answer, and wants it
        room.deliver_up(1, 1)  # only its question arrives
        room.send(0)
        room.deliver_up(0, EVERYTHING)
        room.advance(6)  # the third answer streams
        room.deliver_down(1, EVERYTHING)
        room.deliver_up(1, 1)  # now it joins the first
        room.deliver_down(1, EVERYTHING)
        room.advance(3)
        room.teardown()


def test_joining_an_own_answer_too_late_leaves_the_next_one_in_its_place(tmp_path: Path):
    """Spec/01 §9.4: without the end of its stream, a client puts the next answer behind it."""
    with _machine(tmp_path) as machine:
        room = machine()
        room.begin(tabs=1)
        room.drop(0)
        for _ in range(3):
            room.send(0)
        room.reconnect(0)
        room.deliver_up(0, EVERYTHING)
        room.advance(3)
        room.deliver_down(0, EVERYTHING)  # the first answer, and the second begins
        room.deliver_up(0, 1)  # is there a stream to join?
        room.deliver_down(0, EVERYTHING)  # its own second answer; it wants that
        room.advance(3)
        room.deliver_down(0, EVERYTHING)
        room.advance(3)
        room.deliver_down(0, EVERYTHING)
        room.teardown()
