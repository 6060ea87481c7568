"""Plain `useChat` with `DefaultChatTransport` over HTTP and SSE (spec/01 §14)."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.hooks.script import FIRST, MARKS, SECOND, SLOW, speech
from tests.browser.hooks.site import ScriptedSite
from thinkwell.core.errors import ModelError
from thinkwell.testing import Gate, call, error, reasoning, text

pytestmark = MARKS

HTTP = "use-chat"
WEATHER = 'get_weather output-available {"city":"Oslo"} {"sky":"Oslo is sunny"}'


async def test_text_grows_in_one_bubble(site: ScriptedSite):
    """Case 68."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND), "and more")
    tab = await site.tab(HTTP)
    await tab.say("hello")
    await gate.reached()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    await expect(tab.status).to_have_text("streaming")
    gate.open()
    await tab.rests_with("user: hello", f"assistant: {FIRST}{SECOND}")
    await tab.say("more")
    shown = ("user: hello", f"assistant: {FIRST}{SECOND}", "user: more", "assistant: and more")
    await site.everywhere(tab, *shown)


async def test_reasoning_and_tools_of_several_steps(site: ScriptedSite):
    """14.3: every chunk passes the client's own check."""
    site.inside.may_count.set()
    site.model.add([reasoning("let me see"), call("get_weather", {"city": "Oslo"}), call("fails")])
    site.model.add([call("counts")], "that was all")
    tab = await site.tab(HTTP)
    await tab.say("do it all")
    failed, counted = "fails output-error {} no such luck", 'counts output-available {} "two"'
    answer = f"assistant: (let me see) | {WEATHER} | {failed} | {counted} | that was all"
    await site.everywhere(tab, "user: do it all", answer)


async def test_a_client_tool_answers_and_the_same_bubble_goes_on(site: ScriptedSite):
    """Case 70."""
    site.model.add([call("get_place")], "you are in Oslo")
    tab = await site.tab(HTTP)
    await tab.say("where am I?")
    place = 'get_place output-available {} "Oslo"'
    await site.everywhere(tab, "user: where am I?", f"assistant: {place} | you are in Oslo")


async def test_a_person_answers_after_a_reload(site: ScriptedSite):
    """14.7: the list that comes back holds the answered call."""
    site.model.add([call("ask_person", {"question": "colour?"})], "blue it is")
    tab = await site.tab(HTTP)
    await tab.say("ask me")
    asked = 'ask_person input-available {"question":"colour?"}'
    await tab.rests_with("user: ask me", f"assistant: {asked}")
    await tab.page.reload()
    await tab.rests_with("user: ask me", f"assistant: {asked}")
    await tab.press("Answer call-1")
    answered = 'ask_person output-available {"question":"colour?"} "blue"'
    await site.everywhere(tab, "user: ask me", f"assistant: {answered} | blue it is")


async def test_an_allowed_call_runs_once(site: ScriptedSite):
    """14.7."""
    site.model.add([call("delete", {"target": "moon"})], "it was lovely")
    tab = await site.tab(HTTP)
    await tab.say("delete the moon")
    await tab.press("Allow delete")
    gone = 'delete output-available {"target":"moon"} "moon is gone"'
    await site.everywhere(tab, "user: delete the moon", f"assistant: {gone} | it was lovely")
    assert site.inside.deleted == ["moon"]


async def test_a_forbidden_call_does_not_run(site: ScriptedSite):
    """14.7."""
    site.model.add([call("delete", {"target": "moon"})], "the moon stays")
    tab = await site.tab(HTTP)
    await tab.say("delete the moon")
    await tab.press("Forbid delete")
    denied = 'delete output-denied {"target":"moon"}'
    await site.everywhere(tab, "user: delete the moon", f"assistant: {denied} | the moon stays")
    assert site.inside.deleted == []


async def test_stop_ends_the_turn_and_keeps_what_was_said(site: ScriptedSite):
    """14.4 and 14.6: stopping is a request of its own."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, "never"), "here again")
    tab = await site.tab(HTTP)
    await tab.say("go on")
    await gate.reached()
    await tab.shows("user: go on", f"assistant: {FIRST}")
    await tab.press("Stop")
    await site.everywhere(tab, "user: go on", f"assistant: {FIRST}")
    assert site.inside.ends == ["aborted"]
    await tab.say("back")
    shown = ("user: go on", f"assistant: {FIRST}", "user: back", "assistant: here again")
    await site.everywhere(tab, *shown)


async def test_a_reload_in_the_middle_is_resumed(site: ScriptedSite):
    """Case 69: `resume: true` asks for the running stream, and gets all of it."""
    gate = Gate()
    site.model.add([call("get_weather", {"city": "Oslo"})], speech(FIRST, gate, SECOND))
    tab = await site.tab(HTTP)
    await tab.say("hello")
    await gate.reached()
    for _ in range(2):
        await tab.shows("user: hello", f"assistant: {WEATHER} | {FIRST}")
        await tab.page.reload()
    await tab.shows("user: hello", f"assistant: {WEATHER} | {FIRST}")
    await expect(tab.status).to_have_text("streaming")
    gate.open()
    await site.everywhere(tab, "user: hello", f"assistant: {WEATHER} | {FIRST}{SECOND}")


async def test_a_second_tab_joins_in_the_middle(site: ScriptedSite):
    """Case 69 for somebody else."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND))
    tab = await site.tab(HTTP)
    await tab.say("hello")
    await gate.reached()
    other = await site.tab(HTTP)
    await other.shows("user: hello", f"assistant: {FIRST}")
    gate.open()
    for each in (tab, other):
        await each.rests_with("user: hello", f"assistant: {FIRST}{SECOND}")


async def test_an_error_is_shown_and_the_next_message_works(site: ScriptedSite):
    """14.4."""
    site.model.add([text("so far "), error(ModelError("the provider is down"))], "fine again")
    tab = await site.tab(HTTP)
    await tab.say("hello")
    await expect(tab.page.get_by_role("alert")).to_be_visible()
    await expect(tab.status).to_have_text("error")
    await tab.shows("user: hello", "assistant: so far ")
    await tab.say("again")
    shown = ("user: hello", "assistant: so far ", "user: again", "assistant: fine again")
    await site.everywhere(tab, *shown)


async def test_regenerate_and_edit_replace_what_is_shown(site: ScriptedSite):
    """14.1: the trigger and the message id travel in the body."""
    site.model.add("four", "about four", "six")
    tab = await site.tab(HTTP)
    await tab.say("two and two?")
    await tab.rests_with("user: two and two?", "assistant: four")
    await tab.press("Regenerate 1")
    await site.everywhere(tab, "user: two and two?", "assistant: about four")
    await tab.write("three and three?")
    await tab.press("Edit 0")
    await site.everywhere(tab, "user: three and three?", "assistant: six")


async def test_a_tab_with_the_hooks_sees_the_same_turn(site: ScriptedSite):
    """14.8: one transcript, two ways to watch it."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND), "and back")
    tab, other = await site.tab(HTTP), await site.tab("ai-chat")
    await tab.say("hello")
    await gate.reached()
    await other.shows("user: hello", f"assistant: {FIRST}")
    gate.open()
    whole = ("user: hello", f"assistant: {FIRST}{SECOND}")
    await other.rests_with(*whole)
    await tab.rests_with(*whole)
    await other.say("your turn")
    await other.rests_with(*whole, "user: your turn", "assistant: and back")
    await tab.page.reload()
    await tab.rests_with(*whole, "user: your turn", "assistant: and back")


async def test_questions_that_cross_an_answer_on_a_slow_line_are_stored_in_order(
    site: ScriptedSite,
):
    """DESIGN §8.13: whatever `useChat` makes of streams that overlap, nothing is lost."""
    begins, gate = Gate(), Gate()
    first = [begins, *speech("first ", gate, "answer")]
    site.model.add(first, "second answer", "third answer")
    tab = await site.tab(HTTP)
    site.relay.delays = SLOW
    await tab.say("one")
    await begins.reached()  # requests of their own may overtake each other
    await tab.say("two")
    begins.open()
    await expect(tab.answers).to_have_text(["assistant: first "])
    await tab.say("three")
    await expect(tab.page.locator("article[data-role=user]")).to_have_count(3)
    gate.open()
    await site.turns_ended(3)
    await tab.reload()
    await tab.rests_with(
        "user: one",
        "assistant: first answer",
        "user: two",
        "assistant: second answer",
        "user: three",
        "assistant: third answer",
    )
