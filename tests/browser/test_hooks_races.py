"""Frames that arrive in one piece, through the unmodified hooks (DESIGN §8.14).

Node dispatches the frames of one read without a turn of the microtask queue in between. The line
joins whatever the server says within 5 ms, as networks do; each scenario runs ten times there, and
once in Chromium.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.browser.hooks.place import CHROMIUM, NODE, NODE_UNJOINED, NODE_WS
from tests.browser.hooks.script import EVERYWHERE, FIRST, MARKS, SECOND, speech
from tests.browser.hooks.site import AnySite
from tests.browser.hooks.tab import AnyTab
from thinkwell.core.errors import ModelError
from thinkwell.testing import Gate, call, error

pytestmark = MARKS

HOOKS = "ai-chat"
PLACE = 'get_place output-available {} "Oslo"'
GONE = 'delete output-available {"target":"moon"} "moon is gone"'
EVERY_LINE = pytest.mark.parametrize(
    "place", [CHROMIUM, NODE, NODE_UNJOINED, NODE_WS], ids=str, indirect=True
)


async def ten_times(
    site: AnySite, scenario: Callable[[AnyTab], Awaitable[object]], *bubbles: str
) -> None:
    """The scenario ends with these bubbles every time, and nothing comes late."""
    for run in range(10 if site.place.socket else 1):
        tab = await site.tab(HOOKS, name=f"run-{run}")
        await scenario(tab)
        await tab.rests_with(*bubbles)
    for tab in site.tabs:
        await tab.rests_with(*bubbles)


@EVERY_LINE
async def test_a_plain_answer(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        await tab.say("hello")
        await tab.shows("user: hello", f"assistant: {FIRST}")
        gate.open()

    await ten_times(site, scenario, "user: hello", f"assistant: {FIRST}{SECOND}")


@EVERY_LINE
async def test_an_answer_that_goes_on_after_an_allowed_call(site: AnySite):
    """The result is there while the answer goes on."""

    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add([call("delete", {"target": "moon"})], speech(FIRST, gate, SECOND))
        await tab.say("delete the moon")
        await tab.press("Allow delete")
        await tab.shows("user: delete the moon", f"assistant: {GONE} | {FIRST}")
        gate.open()

    answer = f"assistant: {GONE} | {FIRST}{SECOND}"
    await ten_times(site, scenario, "user: delete the moon", answer)


@EVERY_LINE
async def test_an_answer_that_goes_on_after_a_client_tool_in_one_piece(site: AnySite):
    """It may be over before the page has asked for it."""

    async def scenario(tab: AnyTab) -> None:
        site.model.add([call("get_place")], speech(FIRST))
        await tab.say("where am I?")

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}")


@EVERY_LINE
async def test_an_answer_that_goes_on_after_a_client_tool_and_ends_in_one_piece(site: AnySite):
    """The last words, the transcript and the end: each needs what came before it."""

    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        gate.open()

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}{SECOND}")


@EVERYWHERE
async def test_one_continuation_behind_another(site: AnySite):
    """The end of one and the beginning of the next may come together."""

    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add(
            [call("get_place")], [*speech(FIRST, gate), call("get_place")], speech(SECOND)
        )
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        gate.open()

    answer = f"assistant: {PLACE} | {FIRST} | {PLACE} | {SECOND}"
    await ten_times(site, scenario, "user: where am I?", answer)


@EVERYWHERE
async def test_one_answer_behind_another(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND), speech(SECOND))
        await tab.say("one")
        await tab.says_last(FIRST)
        await tab.say("two")
        await tab.mentions("user: two", 1)
        gate.open()

    shown = ("user: one", f"assistant: {FIRST}{SECOND}", "user: two", f"assistant: {SECOND}")
    await ten_times(site, scenario, *shown)


@EVERYWHERE
async def test_a_clear_while_an_answer_streams(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        await tab.say("one")
        await tab.says_last(FIRST)
        gate.open()
        await tab.press("Clear")

    await ten_times(site, scenario)


@EVERYWHERE
async def test_a_clear_in_another_tab(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        other = await site.tab(HOOKS, name=f"run-{len(site.tabs) // 2}")
        await tab.say("one")
        await tab.says_last(FIRST)
        gate.open()
        await other.press("Clear")

    await ten_times(site, scenario)


@EVERYWHERE
async def test_a_clear_while_an_answer_goes_on(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        gate.open()
        await tab.press("Clear")

    await ten_times(site, scenario)


@EVERYWHERE
async def test_a_reload_in_the_middle(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add(speech(FIRST, gate, SECOND))
        await tab.say("hello")
        await tab.says_last(FIRST)
        await tab.reload()
        await tab.says_last(FIRST)
        gate.open()

    await ten_times(site, scenario, "user: hello", f"assistant: {FIRST}{SECOND}")


@EVERYWHERE
async def test_a_reload_while_an_answer_goes_on(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
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


@EVERYWHERE
async def test_a_stop_while_an_answer_goes_on(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, "never"))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        await tab.press("Stop")

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}")


@EVERYWHERE
async def test_a_line_that_is_lost_while_an_answer_goes_on(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        await site.lose_the_line()
        gate.open()

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}{SECOND}")


@EVERYWHERE
async def test_a_tab_that_watches(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add([call("get_place")], speech(FIRST, gate, SECOND))
        other = await site.tab(HOOKS, name=f"run-{len(site.tabs) // 2}")
        await tab.say("where am I?")
        await other.says_last(FIRST)
        gate.open()

    await ten_times(site, scenario, "user: where am I?", f"assistant: {PLACE} | {FIRST}{SECOND}")


@EVERYWHERE
async def test_an_error_behind_the_last_words(site: AnySite):
    """Case 23: stock clients drop what they have not read when they hear of an error."""

    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        site.model.add([*speech(FIRST, gate, SECOND), error(ModelError("it is down"))], "fine")
        await tab.say("hello")
        await tab.says_last(FIRST)
        gate.open()
        await tab.status_is("error")
        await tab.shows("user: hello", f"assistant: {FIRST}{SECOND}")
        await tab.say("again")

    answer = f"assistant: {FIRST}{SECOND}"
    await ten_times(site, scenario, "user: hello", answer, "user: again", "assistant: fine")


@EVERYWHERE
async def test_an_error_behind_the_last_words_of_an_answer_that_goes_on(site: AnySite):
    async def scenario(tab: AnyTab) -> None:
        gate = Gate()
        fails = [*speech(FIRST, gate, SECOND), error(ModelError("it is down"))]
        site.model.add([call("get_place")], fails, "fine")
        await tab.say("where am I?")
        await tab.says_last(FIRST)
        gate.open()
        await tab.status_is("error")
        await tab.shows("user: where am I?", answer)
        await tab.say("again")

    answer = f"assistant: {PLACE} | {FIRST}{SECOND}"
    await ten_times(site, scenario, "user: where am I?", answer, "user: again", "assistant: fine")
