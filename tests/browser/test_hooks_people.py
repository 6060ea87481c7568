"""Tools that wait for the browser or for a person, through the unmodified hooks (spec/01 §11).

The answer goes on in the bubble that asked, as in the transcript of the server.
"""

from __future__ import annotations

from tests.browser.hooks.script import EVERYWHERE, HOOKS, MARKS, speech
from tests.browser.hooks.site import AnySite
from thinkwell.testing import Gate, call

pytestmark = [*MARKS, EVERYWHERE]

PLACE = 'get_place output-available {} "Oslo"'
COLOUR = '{"question":"colour?"}'
ASKED = f"ask_person input-available {COLOUR}"
ANSWERED = f'ask_person output-available {COLOUR} "blue"'
MOON = 'delete {state} {{"target":"moon"}}'
GONE = MOON.format(state="output-available") + ' "moon is gone"'


@HOOKS
async def test_a_client_tool_runs_in_the_page_and_the_answer_goes_on(site: AnySite, hooks: str):
    """Cases 51 and 52, with a continuation that is over before the page has asked for it."""
    site.model.add([call("get_place")], "you are in Oslo")
    tab = await site.tab(hooks)
    await tab.say("where am I?")
    await site.everywhere(tab, "user: where am I?", f"assistant: {PLACE} | you are in Oslo")
    assert site.inside.ends == ["completed", "completed"]


@HOOKS
async def test_a_second_tab_watches_the_answer_go_on(site: AnySite, hooks: str):
    """Case 51 with another tab: both end with the same single bubble."""
    gate = Gate()
    site.model.add([call("ask_person", {"question": "colour?"})], speech("so it ", gate, "is"))
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("ask me")
    await other.shows("user: ask me", f"assistant: {ASKED}")
    await tab.press("Answer call-1")
    await gate.reached()
    await other.shows("user: ask me", f"assistant: {ANSWERED} | so it ")
    gate.open()
    await other.rests_with("user: ask me", f"assistant: {ANSWERED} | so it is")
    await site.everywhere(tab, "user: ask me", f"assistant: {ANSWERED} | so it is")


@HOOKS
async def test_a_question_to_the_person_survives_a_reload(site: AnySite, hooks: str):
    """§11.13: the call still waits, and the page that comes back can answer it."""
    site.model.add([call("ask_person", {"question": "colour?"})], "blue it is")
    tab = await site.tab(hooks)
    await tab.say("ask me")
    await tab.shows("user: ask me", f"assistant: {ASKED}")
    await tab.reload()
    await tab.shows("user: ask me", f"assistant: {ASKED}")
    await tab.press("Answer call-1")
    await site.everywhere(tab, "user: ask me", f"assistant: {ANSWERED} | blue it is")


@HOOKS
async def test_two_client_tools_are_waited_for_together(site: AnySite, hooks: str):
    """Case 54: one continuation after both results."""
    site.model.add([call("get_place"), call("ask_person", {"question": "colour?"})], "both known")
    tab = await site.tab(hooks)
    await tab.say("ask both")
    await tab.shows("user: ask both", f"assistant: {PLACE} | {ASKED}")
    await tab.press("Answer call-2")
    await site.everywhere(tab, "user: ask both", f"assistant: {PLACE} | {ANSWERED} | both known")
    assert site.inside.ends == ["completed", "completed"]


@HOOKS
async def test_an_allowed_call_runs_once_and_the_answer_goes_on(site: AnySite, hooks: str):
    """Case 58, with a reload between the question and the decision."""
    site.model.add([call("delete", {"target": "moon"})], "it was lovely")
    tab = await site.tab(hooks)
    await tab.say("delete the moon")
    asked = "assistant: " + MOON.format(state="approval-requested")
    await tab.shows("user: delete the moon", asked)
    await tab.reload()
    await tab.shows("user: delete the moon", asked)
    assert site.inside.deleted == []
    await tab.press("Allow delete")
    await site.everywhere(tab, "user: delete the moon", f"assistant: {GONE} | it was lovely")
    assert site.inside.deleted == ["moon"]


@HOOKS
async def test_the_result_of_an_allowed_call_stays_while_the_answer_goes_on(
    site: AnySite, hooks: str
):
    """DESIGN §8.14: in the tab that allowed it, in one that watches, and in one that comes late."""
    gate = Gate()
    site.model.add([call("delete", {"target": "moon"})], speech("it was ", gate, "lovely"))
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("delete the moon")
    await tab.press("Allow delete")
    await gate.reached()
    for each in (tab, other):
        await each.shows("user: delete the moon", f"assistant: {GONE} | it was ")
    await other.reload()
    await other.says_last("it was ")
    await other.mentions(GONE, 1)
    gate.open()
    await other.rests_with("user: delete the moon", f"assistant: {GONE} | it was lovely ")
    await site.everywhere(tab, "user: delete the moon", f"assistant: {GONE} | it was lovely ")


@HOOKS
async def test_the_result_of_an_allowed_call_may_grow(site: AnySite, hooks: str):
    """Case 64 for a call that waited."""
    site.model.add([call("sweep")], "swept")
    tab = await site.tab(hooks)
    await tab.say("sweep")
    await tab.press("Allow sweep")
    early = 'assistant: sweep output-available {} "one" (more to come)'
    await tab.shows("user: sweep", early)
    site.inside.may_count.set()
    await site.everywhere(tab, "user: sweep", 'assistant: sweep output-available {} "two" | swept')


@HOOKS
async def test_a_forbidden_call_does_not_run_and_the_model_hears_of_it(site: AnySite, hooks: str):
    """Case 59."""
    site.model.add([call("delete", {"target": "moon"})], "the moon stays")
    tab = await site.tab(hooks)
    await tab.say("delete the moon")
    await tab.press("Forbid delete")
    denied = MOON.format(state="output-denied")
    await site.everywhere(tab, "user: delete the moon", f"assistant: {denied} | the moon stays")
    assert site.inside.deleted == []


@HOOKS
async def test_a_decision_in_one_tab_takes_the_question_from_the_other(site: AnySite, hooks: str):
    """§11.5: the first decision wins, everywhere."""
    site.model.add([call("delete", {"target": "moon"})], "it was lovely")
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("delete the moon")
    await other.press("Allow delete")
    for each in (other, tab):
        await each.rests_with("user: delete the moon", f"assistant: {GONE} | it was lovely")
        await each.offers("Allow delete", 0)
    assert site.inside.deleted == ["moon"]
