"""Any number of tabs doing anything: at rest all of them show the server's transcript, and `ready`.

A Hypothesis state machine drives tabs that behave like the npm hook (`tab.py`) against a real
server on a real port, whose model waits at a gate behind every word. Spec/01 §6-§11.

A person acts when nothing is on its way, so every run is the same; offline, one asks only one
thing, because a burst of frames at the reconnect crosses with the answers to it. With `HASTY=1`
in the environment nobody waits and frames cross; what happens then depends on the machine.
"""

from __future__ import annotations

import asyncio
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

from tests.abuse.room import SCRIPTS, Room, Script, Wire, shown, transcript, until
from tests.wire.serving import serving
from thinkwell import App

HASTY = os.environ.get("HASTY") == "1"
MAX_TABS = 3
TEXTS = st.sampled_from(["hello", "call:ask", "call:pay", "call:look", "call:ask call:pay"])
NAMES = count(1)


class Tabs(RuleBasedStateMachine):
    """Tabs of one conversation."""

    run: Any
    app: App
    url: str

    @initialize()
    def begin(self) -> None:
        self.name = f"room-{next(NAMES)}"
        self.script = SCRIPTS[self.name] = Script()
        self.agent = self.app.agent(Room, self.name)
        self.address = f"{self.url}/agents/room/{self.name}"
        self.made = self.edits = 0
        self.tabs: list[Wire] = []
        self.open_tab()

    @rule()
    def open_tab(self) -> None:
        if len(self.tabs) < MAX_TABS:
            self.run(self._quiet())
            self.made += 1
            wire = Wire(self.address, f"t{self.made}")
            self.run(wire.load())
            self.run(wire.open())
            self.tabs.append(wire)

    @rule(which=st.integers(0, MAX_TABS - 1))
    def reload(self, which: int) -> None:
        wire = self._tab(which)
        self.run(wire.drop())
        self.tabs.remove(wire)
        self.open_tab()

    @rule(which=st.integers(0, MAX_TABS - 1))
    def drop(self, which: int) -> None:
        self.run(self._tab(which).drop())

    @rule(which=st.integers(0, MAX_TABS - 1))
    def reconnect(self, which: int) -> None:
        wire = self._tab(which)
        if not wire.online:
            self.run(wire.open())

    @rule(which=st.integers(0, MAX_TABS - 1), text=TEXTS)
    def send(self, which: int, text: str) -> None:
        wire = self._tab(which)
        if not wire.loaded:
            wire.tab.submit(text)

    @rule(which=st.integers(0, MAX_TABS - 1), text=TEXTS)
    def edit(self, which: int, text: str) -> None:
        wire = self._tab(which)
        tab = wire.tab
        asked = [m["id"] for m in tab.messages if m["role"] == "user"]
        if asked and tab.status == "ready" and not wire.loaded:
            self.edits += 1  # never the same text twice: that is no edit
            tab.edit(asked[-1], f"{text} again {self.edits}")

    @rule(which=st.integers(0, MAX_TABS - 1))
    def regenerate(self, which: int) -> None:
        wire = self._tab(which)
        if wire.tab.messages and wire.tab.status == "ready" and not wire.loaded:
            wire.tab.regenerate()

    @rule(which=st.integers(0, MAX_TABS - 1))
    def stop(self, which: int) -> None:
        self._tab(which).tab.stop()

    @rule(which=st.integers(0, MAX_TABS - 1))
    def clear(self, which: int) -> None:
        wire = self._tab(which)
        if wire.online:
            wire.tab.clear()

    @rule(which=st.integers(0, MAX_TABS - 1))
    def answer(self, which: int) -> None:
        tab = self._tab(which).tab
        for call_id in _calls(tab.messages, "input-available")[:1]:
            tab.answer(call_id, f"from {tab.name}")

    @rule(which=st.integers(0, MAX_TABS - 1), approved=st.booleans())
    def decide(self, which: int, approved: bool) -> None:
        tab = self._tab(which).tab
        for call_id in _calls(tab.messages, "approval-requested")[:1]:
            tab.decide(call_id, approved=approved)

    @rule(times=st.integers(1, 4))
    def advance(self, times: int) -> None:
        for _ in range(times):
            self.script.advance()

    @rule()
    def settle(self) -> None:
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

    def _tab(self, which: int) -> Wire:
        self.run(self._quiet())
        return self.tabs[which % len(self.tabs)]

    async def _quiet(self) -> None:
        """Until nothing is on its way: the model stands at a gate, or no turn runs."""
        if HASTY:
            return
        await until(self._is_quiet, self._story)

    async def _is_quiet(self) -> bool:
        said = sum(len(wire.log) for wire in self.tabs)
        idle = await self.agent.is_idle()
        stands = idle or self.script.held
        for wire in self.tabs:
            await wire.settle()
        return stands and said == sum(len(wire.log) for wire in self.tabs)

    async def _rest(self) -> None:
        await self._quiet()
        self.script.release()
        for wire in self.tabs:
            if not wire.online:
                await wire.open()
        await until(self._is_at_rest, self._story)
        self.script.open = False
        stored = await transcript(self.address)
        for wire in self.tabs:
            seen, expected = (shown(m, wire.tab.cut) for m in (wire.tab.messages, stored))
            assert seen == expected, f"{seen}\ninstead of\n{expected}\n{self._story()}"
            assert wire.tab.status == "ready", f"{wire.tab.error}\n{self._story()}"

    async def _is_at_rest(self) -> bool:
        for wire in self.tabs:
            await wire.settle()
        idle = await self.agent.is_idle()
        return idle and not any(wire.tab.waits for wire in self.tabs)

    def _story(self) -> str:
        """What every tab saw and said, for the report of a failure."""
        return "rest\n" + "\n".join(
            "\n".join([f"{wire.tab.name} is {wire.tab.status}, {wire.tab.waits}", *wire.log])
            for wire in self.tabs
        )


def _calls(messages: list[dict[str, Any]], state: str) -> list[str]:
    parts = [part for message in messages for part in message["parts"]]
    return [part["toolCallId"] for part in parts if part.get("state") == state]


@contextmanager
def _machine(folder: Path) -> Iterator[type[Tabs]]:
    """The machine on a running server."""
    with asyncio.Runner() as runner:
        app = App(agents=[Room], store=f"sqlite:///{folder / 'tabs.db'}")
        server = serving(app)
        url = runner.run(server.__aenter__())
        try:
            yield type("Tabs", (Tabs,), {"run": staticmethod(runner.run), "app": app, "url": url})
        finally:
            runner.run(server.__aexit__(None, None, None))


@pytest.mark.timeout(600)
def test_at_rest_every_tab_shows_the_transcript_and_is_ready(tmp_path: Path):
    """Spec/01 §9.4, §10: connect, send, stop, clear, regenerate, edit, reload, drop, answer."""
    profile = settings(
        derandomize=True,
        max_examples=300,
        stateful_step_count=30,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    with _machine(tmp_path) as machine:
        run_state_machine_as_test(machine, settings=profile)
