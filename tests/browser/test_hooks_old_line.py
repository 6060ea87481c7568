"""Clients of the 0.21 line, with the AI SDK of their time, keep working (spec/01 3.4, D4)."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.hooks.script import FIRST, MARKS, SECOND, speech
from tests.browser.hooks.site import ScriptedSite
from tests.browser.hooks.tab import LOST_LINE
from thinkwell.core.errors import ModelError
from thinkwell.testing import Gate, call, error, reasoning, text

pytestmark = MARKS

OLD = "old"


async def test_an_old_client_shows_an_answer_once(site: ScriptedSite):
    gate = Gate()
    site.model.add([reasoning("hm"), call("get_weather", {"city": "Oslo"})])
    site.model.add(speech(FIRST, gate, SECOND))
    tab, other = await site.tab(OLD), await site.tab(OLD)
    await tab.say("hello")
    await gate.reached()
    weather = 'get_weather output-available {"city":"Oslo"} {"sky":"Oslo is sunny"}'
    await other.shows("user: hello", f"assistant: (hm) | {weather} | {FIRST}")
    gate.open()
    whole = f"assistant: (hm) | {weather} | {FIRST}{SECOND}"
    await other.rests_with("user: hello", whole)
    await site.everywhere(tab, "user: hello", whole)


async def test_an_old_client_runs_its_tools(site: ScriptedSite):
    site.model.add([call("get_place")], "you are in Oslo")
    tab = await site.tab(OLD)
    await tab.say("where am I?")
    place = 'get_place output-available {} "Oslo"'
    await site.everywhere(tab, "user: where am I?", f"assistant: {place} | you are in Oslo")


async def test_an_old_client_allows_a_call(site: ScriptedSite):
    site.model.add([call("delete", {"target": "moon"})], "it was lovely")
    tab = await site.tab(OLD)
    await tab.say("delete the moon")
    await tab.press("Allow delete")
    gone = 'delete output-available {"target":"moon"} "moon is gone"'
    await site.everywhere(tab, "user: delete the moon", f"assistant: {gone} | it was lovely")
    assert site.inside.deleted == ["moon"]


async def test_an_old_client_reloads_in_the_middle(site: ScriptedSite):
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND))
    tab = await site.tab(OLD)
    await tab.say("hello")
    await gate.reached()
    await tab.page.reload()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    gate.open()
    await site.everywhere(tab, "user: hello", f"assistant: {FIRST}{SECOND}")


async def test_an_old_client_takes_up_a_lost_line(site: ScriptedSite):
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND))
    tab = await site.tab(OLD)
    tab.forgive(LOST_LINE)
    await tab.say("hello")
    await gate.reached()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    await site.lose_the_line()
    gate.open()
    await site.everywhere(tab, "user: hello", f"assistant: {FIRST}{SECOND}")


async def test_an_old_client_stops_regenerates_and_hears_of_an_error(site: ScriptedSite):
    gate = Gate()
    site.model.add(speech(FIRST, gate, "never"), "another answer")
    site.model.add([text("so far "), error(ModelError("the provider is down"))], "fine again")
    tab = await site.tab(OLD)
    await tab.say("hello")
    await gate.reached()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    await tab.press("Stop")
    await tab.rests_with("user: hello", f"assistant: {FIRST}")
    await tab.press("Regenerate 1")
    await site.everywhere(tab, "user: hello", "assistant: another answer")
    await tab.say("more")
    await expect(tab.page.get_by_role("alert")).to_be_visible()
    await tab.say("again")
    await site.everywhere(
        tab,
        "user: hello",
        "assistant: another answer",
        "user: more",
        "assistant: so far ",
        "user: again",
        "assistant: fine again",
    )
