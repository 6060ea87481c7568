"""Answers of every kind through the unmodified hooks, as a person sees them (spec/01 §6, §9).

Each scenario ends with the same bubbles in the tab that asked, in a new tab and after a reload.
"""

from __future__ import annotations

from tests.browser.hooks.script import EVERYWHERE, FIRST, HOOKS, MARKS, SECOND, speech
from tests.browser.hooks.site import AnySite
from thinkwell.core.errors import ModelError
from thinkwell.testing import Gate, call, error, reasoning, text

pytestmark = [*MARKS, EVERYWHERE]

SUNNY = '{"sky":"Oslo is sunny"}'
WEATHER = f'get_weather output-available {{"city":"Oslo"}} {SUNNY}'


@HOOKS
async def test_text_grows_in_one_bubble(site: AnySite, hooks: str):
    """Cases 19 and 20."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND))
    tab = await site.tab(hooks)
    await tab.say("hello")
    await gate.reached()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    await tab.status_is("streaming")
    gate.open()
    await site.everywhere(tab, "user: hello", f"assistant: {FIRST}{SECOND}")


@HOOKS
async def test_reasoning_stands_before_the_answer(site: AnySite, hooks: str):
    """F2 and F3."""
    site.model.add([reasoning("let me think"), text("it is four")])
    tab = await site.tab(hooks)
    await tab.say("two and two?")
    await site.everywhere(tab, "user: two and two?", "assistant: (let me think) | it is four")


@HOOKS
async def test_a_server_tool_shows_input_and_output_in_the_same_bubble(site: AnySite, hooks: str):
    """F5 to F11."""
    site.model.add([call("get_weather", {"city": "Oslo"})], "take no coat")
    tab = await site.tab(hooks)
    await tab.say("weather?")
    await site.everywhere(tab, "user: weather?", f"assistant: {WEATHER} | take no coat")


@HOOKS
async def test_parallel_tools_and_one_that_fails(site: AnySite, hooks: str):
    """F11 and F12: three calls of one step, each with its own outcome."""
    calls = [call("get_weather", {"city": "Oslo"}), call("fails"), call("counts")]
    site.inside.may_count.set()
    site.model.add(calls, "that was all")
    tab = await site.tab(hooks)
    await tab.say("do it all")
    failed = "fails output-error {} no such luck"
    counted = 'counts output-available {} "two"'
    answer = f"assistant: {WEATHER} | {failed} | {counted} | that was all"
    await site.everywhere(tab, "user: do it all", answer)


@HOOKS
async def test_a_result_may_grow(site: AnySite, hooks: str):
    """Case 64: the preliminary result is shown as such, then the final one alone."""
    site.model.add([call("counts")], "counted")
    tab = await site.tab(hooks)
    await tab.say("count")
    early = 'assistant: counts output-available {} "one" (more to come)'
    await tab.shows("user: count", early)
    await tab.reload()
    await tab.shows("user: count", early)
    site.inside.may_count.set()
    done = 'assistant: counts output-available {} "two" | counted'
    await site.everywhere(tab, "user: count", done)


@HOOKS
async def test_a_model_error_is_shown_and_the_next_message_works(site: AnySite, hooks: str):
    """Cases 23 and 46: the words before the error stay, once, also after a reload."""
    site.model.add([text("so far "), error(ModelError("the provider is down"))], "fine again")
    tab = await site.tab(hooks)
    await tab.say("hello")
    for _ in range(2):
        await tab.alarms()
        await tab.status_is("error")
        await tab.shows("user: hello", "assistant: so far ")
        await tab.reload()
    await tab.alarms()
    await tab.say("again")
    shown = ("user: hello", "assistant: so far ", "user: again", "assistant: fine again")
    await site.everywhere(tab, *shown)


@HOOKS
async def test_messages_sent_back_to_back_are_answered_in_order(site: AnySite, hooks: str):
    """§8.1, policy `queue`: nothing is lost and nothing is shown twice."""
    gate = Gate()
    site.model.add(speech("first ", gate, "answer"), "second answer", "third answer")
    tab = await site.tab(hooks)
    await tab.say("one")
    await gate.reached()
    await tab.say("two")
    await tab.say("three")
    await tab.mentions("user: ", 3)
    gate.open()
    await site.turns_ended(3)
    await site.everywhere(
        tab,
        "user: one",
        "assistant: first answer",
        "user: two",
        "assistant: second answer",
        "user: three",
        "assistant: third answer",
    )
