"""Stop, regenerate, edit, branch and clear through the unmodified hooks (spec/01 §8)."""

from __future__ import annotations

from tests.browser.hooks.script import EVERYWHERE, FIRST, HOOKS, MARKS, speech
from tests.browser.hooks.site import AnySite
from thinkwell.testing import Gate, call

pytestmark = [*MARKS, EVERYWHERE]


@HOOKS
async def test_stop_keeps_what_was_said_and_the_next_message_works(site: AnySite, hooks: str):
    """Case 22."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, "never"), "here again")
    tab = await site.tab(hooks)
    await tab.say("go on")
    await gate.reached()
    await tab.shows("user: go on", f"assistant: {FIRST}")
    await tab.press("Stop")
    await site.everywhere(tab, "user: go on", f"assistant: {FIRST}")
    assert site.inside.ends == ["aborted"]
    await tab.say("back")
    shown = ("user: go on", f"assistant: {FIRST}", "user: back", "assistant: here again")
    await site.everywhere(tab, *shown)


@HOOKS
async def test_another_tab_can_stop_the_answer(site: AnySite, hooks: str):
    """§8.2: sent by any connection."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, "never"))
    tab = await site.tab(hooks)
    await tab.say("go on")
    await gate.reached()
    other = await site.tab(hooks)
    await other.shows("user: go on", f"assistant: {FIRST}")
    await other.press("Stop")
    await other.rests_with("user: go on", f"assistant: {FIRST}")
    await site.everywhere(tab, "user: go on", f"assistant: {FIRST}")


@HOOKS
async def test_stop_while_a_tool_runs(site: AnySite, hooks: str):
    """The turn ends, and the call that was cut off says so instead of running for ever."""
    site.model.add([call("counts")])
    tab = await site.tab(hooks)
    await tab.say("count")
    await tab.shows("user: count", 'assistant: counts output-available {} "one" (more to come)')
    await tab.press("Stop")
    doubt = "Stopped while it ran (stopped by the user). It may have happened."
    cut = f"assistant: counts output-error {{}} {doubt}"
    await site.everywhere(tab, "user: count", cut)
    assert site.inside.ends == ["aborted"]


@HOOKS
async def test_regenerate_makes_a_second_answer_and_the_first_can_be_brought_back(
    site: AnySite, hooks: str
):
    """Case 31, profile B: the old answer stays as a branch."""
    site.model.add("first answer", "second answer")
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("hello")
    await tab.rests_with("user: hello", "assistant: first answer")
    await tab.press("Regenerate 1")
    for each in (tab, other):
        await each.rests_with("user: hello", "assistant: second answer")
    branches = await tab.run("agent.call('getBranches', [document.querySelector('li').dataset.id])")
    assert [branch["parts"][-1]["text"] for branch in branches] == ["first answer", "second answer"]
    await tab.run("id => agent.call('setActiveLeaf', [id])", branches[0]["id"])
    await other.rests_with("user: hello", "assistant: first answer")
    await site.everywhere(tab, "user: hello", "assistant: first answer")


@HOOKS
async def test_a_message_said_after_going_back_joins_the_branch_that_is_shown(
    site: AnySite, hooks: str
):
    site.model.add("first answer", "second answer", "third answer")
    tab = await site.tab(hooks)
    await tab.say("hello")
    await tab.rests_with("user: hello", "assistant: first answer")
    first = await tab.run("document.querySelectorAll('li')[1].dataset.id")
    await tab.press("Regenerate 1")
    await tab.rests_with("user: hello", "assistant: second answer")
    await tab.run("id => agent.call('setActiveLeaf', [id])", first)
    await tab.rests_with("user: hello", "assistant: first answer")
    await tab.say("and now?")
    shown = ("user: hello", "assistant: first answer", "user: and now?", "assistant: third answer")
    await site.everywhere(tab, *shown)


@HOOKS
async def test_an_edited_question_gets_a_new_answer(site: AnySite, hooks: str):
    """§8.5: what came after the old question is no longer shown, in any tab."""
    site.model.add("four", "nothing more", "six")
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("two and two?")
    await tab.rests_with("user: two and two?", "assistant: four")
    await tab.say("and?")
    shown = ("user: two and two?", "assistant: four", "user: and?", "assistant: nothing more")
    await tab.rests_with(*shown)
    await tab.write("three and three?")
    await tab.press("Edit 0")
    await other.rests_with("user: three and three?", "assistant: six")
    await site.everywhere(tab, "user: three and three?", "assistant: six")


@HOOKS
async def test_clear_empties_every_tab(site: AnySite, hooks: str):
    """Case 36, while nothing runs."""
    site.model.add("something", "something else")
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("hello")
    await other.rests_with("user: hello", "assistant: something")
    await tab.press("Clear")
    await other.rests_with()
    await site.everywhere(tab)
    await tab.say("anew")
    await other.rests_with("user: anew", "assistant: something else")
    await site.everywhere(tab, "user: anew", "assistant: something else")


@HOOKS
async def test_clear_while_an_answer_streams_leaves_nothing_behind(site: AnySite, hooks: str):
    """Case 36: no ghost of the aborted answer, in any tab."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, "never"), "something else")
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("go on")
    await gate.reached()
    await other.shows("user: go on", f"assistant: {FIRST}")
    await tab.press("Clear")
    await other.rests_with()
    await site.everywhere(tab)
    await tab.say("anew")
    await other.rests_with("user: anew", "assistant: something else")
    await site.everywhere(tab, "user: anew", "assistant: something else")
