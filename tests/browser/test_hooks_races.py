"""Frames that arrive in one piece, through the unmodified hooks (DESIGN §8.14).

Node dispatches the frames of one read without a turn of the microtask queue in between. The line
joins whatever the server says within 5 ms, as networks do; each scenario runs ten times.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.browser.hooks.node_tab import NodeTab, node_windows
from tests.browser.hooks.relay import JOINED
from tests.browser.hooks.script import FIRST, MARKS, SECOND, speech
from tests.browser.hooks.site import AnyScriptedSite
from thinkwell.testing import Gate, call

pytestmark = MARKS

TEN_TIMES = range(10)
HOOKS = "ai-chat"
PLACE = 'get_place output-available {} "Oslo"'
GONE = 'delete output-available {"target":"moon"} "moon is gone"'
LINES = [("undici", 0.0), ("undici", JOINED), ("ws", JOINED)]
"""Node's WebSocket and the package `ws`; and for how long the line joins what the server says."""

ONE_LINE = pytest.mark.parametrize("site", LINES[1:2], ids=["undici-joined"], indirect=True)

RaceSite = AnyScriptedSite[NodeTab]


@pytest.fixture(params=LINES, ids=["undici", "undici-joined", "ws-joined"])
async def site(request: pytest.FixtureRequest) -> AsyncIterator[RaceSite]:
    socket, joins = request.param
    async with node_windows(socket) as windows, AnyScriptedSite(windows.tab) as site:
        site.relay.joins = joins
        yield site
        site.model.assert_complete()


async def ten_times(
    site: RaceSite, scenario: Callable[[NodeTab], Awaitable[object]], *bubbles: str
) -> None:
    """The scenario ends with these bubbles every time, and nothing comes late."""
    for run in TEN_TIMES:
        tab = await site.tab(HOOKS, name=f"run-{run}")
        await scenario(tab)
        await tab.rests_with(*bubbles)
    for tab in site.tabs:
        await tab.rests_with(*bubbles)


async def test_a_plain_answer(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        await tab.say("hello")
        await tab.shows("user: hello", f"assistant: {FIRST}")
        gate.open()

    await ten_times(site, scenario, "user: hello", f"assistant: {FIRST}{SECOND}")


async def test_an_answer_that_goes_on_after_an_allowed_call(site: RaceSite):
    """The result is there while the answer goes on."""

    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add([call("delete", {"target": "moon"})], speech(FIRST, gate, SECOND))
        await tab.say("delete the moon")
        await tab.press("Allow delete")
        await tab.shows("user: delete the moon", f"assistant: {GONE} | {FIRST}")
        gate.open()

    answer = f"assistant: {GONE} | {FIRST}{SECOND}"
    await ten_times(site, scenario, "user: delete the moon", answer)


async def test_an_answer_that_goes_on_after_a_client_tool_in_one_piece(site: RaceSite):
    """It may be over before the page has asked for it."""

    async def scenario(tab: NodeTab) -> None:
        site.model.add([call("get_place")], speech(FIRST))
        await tab.say("where am I?")

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}")


async def test_an_answer_that_goes_on_after_a_client_tool_and_ends_in_one_piece(site: RaceSite):
    """The last words, the transcript and the end: each needs what came before it."""

    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        gate.open()

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}{SECOND}")


@ONE_LINE
async def test_one_continuation_behind_another(site: RaceSite):
    """The end of one and the beginning of the next may come together."""

    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add(
            [call("get_place")], [*speech(FIRST, gate), call("get_place")], speech(SECOND)
        )
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        gate.open()

    answer = f"assistant: {PLACE} | {FIRST} | {PLACE} | {SECOND}"
    await ten_times(site, scenario, "user: where am I?", answer)


@ONE_LINE
async def test_one_answer_behind_another(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND), speech(SECOND))
        await tab.say("one")
        await tab.says_last(FIRST)
        await tab.say("two")
        await tab.until(lambda shown: "user: two" in shown["bubbles"])
        gate.open()

    shown = ("user: one", f"assistant: {FIRST}{SECOND}", "user: two", f"assistant: {SECOND}")
    await ten_times(site, scenario, *shown)


@ONE_LINE
async def test_a_clear_while_an_answer_streams(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        await tab.say("one")
        await tab.says_last(FIRST)
        gate.open()
        await tab.press("Clear")

    await ten_times(site, scenario)


@ONE_LINE
async def test_a_clear_in_another_tab(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        other = await site.tab(HOOKS, name=f"run-{len(site.tabs) // 2}")
        await tab.say("one")
        await tab.says_last(FIRST)
        gate.open()
        await other.press("Clear")

    await ten_times(site, scenario)


@ONE_LINE
async def test_a_clear_while_an_answer_goes_on(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        gate.open()
        await tab.press("Clear")

    await ten_times(site, scenario)


@ONE_LINE
async def test_a_reload_in_the_middle(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        await tab.say("hello")
        await tab.says_last(FIRST)
        await tab.reload()
        await tab.says_last(FIRST)
        gate.open()

    await ten_times(site, scenario, "user: hello", f"assistant: {FIRST}{SECOND}")


@ONE_LINE
async def test_a_reload_while_an_answer_goes_on(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add([call("delete", {"target": "moon"})], speech(FIRST, gate, SECOND))
        await tab.say("delete the moon")
        await tab.press("Allow delete")
        await tab.says_last(FIRST)
        await tab.reload()
        await tab.says_last(FIRST)
        gate.open()

    answer = f"assistant: {GONE} | {FIRST}{SECOND}"
    await ten_times(site, scenario, "user: delete the moon", answer)


@ONE_LINE
async def test_a_stop_while_an_answer_goes_on(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, "never"))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        await tab.press("Stop")

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}")


@ONE_LINE
async def test_a_line_that_is_lost_while_an_answer_goes_on(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        await site.lose_the_line()
        gate.open()

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}{SECOND}")


@ONE_LINE
async def test_a_tab_that_watches(site: RaceSite):
    async def scenario(tab: NodeTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        other = await site.tab(HOOKS, name=f"run-{len(site.tabs) // 2}")
        await tab.say("where am I?")
        await other.says_last(FIRST)
        gate.open()

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}{SECOND}")
