"""Reloads, second tabs and lost lines through the unmodified hooks (spec/01 §2, §10)."""

from __future__ import annotations

from tests.browser.hooks.script import EVERYWHERE, FIRST, HOOKS, MARKS, SECOND, SLOW, speech
from tests.browser.hooks.site import AnySite
from tests.browser.hooks.tab import LOST_LINE
from thinkwell.testing import Gate, call, reasoning

pytestmark = [*MARKS, EVERYWHERE]

WHOLE = f"assistant: {FIRST}{SECOND}"


@HOOKS
async def test_a_reload_in_the_middle_goes_on_where_it_was(site: AnySite, hooks: str):
    """Case 38."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND))
    tab = await site.tab(hooks)
    await tab.say("hello")
    await gate.reached()
    for _ in range(3):
        await tab.shows("user: hello", f"assistant: {FIRST}")
        await tab.reload()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    gate.open()
    await site.everywhere(tab, "user: hello", WHOLE)


@HOOKS
async def test_a_reload_before_the_first_word_waits_for_it(site: AnySite, hooks: str):
    """Case 43: accepted, but nothing has been said yet."""
    gate = Gate()
    site.model.add([gate, *speech(FIRST)])
    tab = await site.tab(hooks)
    await tab.say("hello")
    await gate.reached()
    await tab.reload()
    await tab.connected()
    # The answer may have begun without a word, so there may be an empty bubble, or none yet.
    await tab.mentions("user: hello", 1)
    await tab.mentions("word1", 0)
    gate.open()
    await site.everywhere(tab, "user: hello", f"assistant: {FIRST}")


@HOOKS
async def test_a_second_tab_joins_in_the_middle(site: AnySite, hooks: str):
    """Cases 38 and 41: it catches up and follows; both end alike."""
    gate = Gate()
    site.model.add([reasoning("well now"), call("get_weather", {"city": "Oslo"})])
    site.model.add(speech(FIRST, gate, SECOND))
    tab = await site.tab(hooks)
    await tab.say("hello")
    await gate.reached()
    other = await site.tab(hooks)
    weather = 'get_weather output-available {"city":"Oslo"} {"sky":"Oslo is sunny"}'
    said = f"assistant: (well now) | {weather} | {FIRST}"
    await other.shows("user: hello", said)
    gate.open()
    await other.rests_with("user: hello", said + SECOND)
    await site.everywhere(tab, "user: hello", said + SECOND)


@HOOKS
async def test_an_idle_tab_sees_what_another_one_says(site: AnySite, hooks: str):
    """§10.7: the question at once, the answer as it grows, then both rest; and the other way."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND), "and back")
    tab, other = await site.tab(hooks), await site.tab(hooks)
    await tab.say("hello")
    await gate.reached()
    await other.shows("user: hello", f"assistant: {FIRST}")
    await other.status_is("ready server-streaming")
    gate.open()
    await other.rests_with("user: hello", WHOLE)
    await other.say("your turn")
    shown = ("user: hello", WHOLE, "user: your turn", "assistant: and back")
    await tab.rests_with(*shown)
    await site.everywhere(other, *shown)


@HOOKS
async def test_a_lost_line_in_the_middle_is_taken_up_again(site: AnySite, hooks: str):
    """Case 50: the socket dies without a word; the page comes back and nothing is doubled."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND))
    tab = await site.tab(hooks)
    tab.forgive(LOST_LINE)
    await tab.say("hello")
    await gate.reached()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    for _ in range(2):
        await site.lose_the_line()
        await tab.shows("user: hello", f"assistant: {FIRST}")
        await tab.status_is("streaming")
    gate.open()
    await site.everywhere(tab, "user: hello", WHOLE)


@HOOKS
async def test_an_answer_that_ended_while_the_line_was_lost_is_whole(site: AnySite, hooks: str):
    """Case 42: the page comes back after the end and shows the stored answer once."""
    gate = Gate()
    site.model.add(speech(FIRST, gate, SECOND), "still here")
    tab = await site.tab(hooks)
    tab.forgive(LOST_LINE)
    await tab.say("hello")
    await gate.reached()
    await tab.shows("user: hello", f"assistant: {FIRST}")
    site.relay.sockets_pass.clear()
    site.relay.cut()
    gate.open()
    await site.turns_ended(1)
    site.relay.sockets_pass.set()
    await site.everywhere(tab, "user: hello", WHOLE)
    await tab.say("there?")
    await site.everywhere(tab, "user: hello", WHOLE, "user: there?", "assistant: still here")


@HOOKS
async def test_what_is_said_before_the_socket_is_open_is_answered_once(site: AnySite, hooks: str):
    """§2.1 and 3.4.2: the queued message survives the first transcript."""
    site.model.add("here you are")
    site.relay.sockets_pass.clear()
    tab = await site.tab(hooks)
    await tab.say("early")
    await tab.shows("user: early")
    site.relay.sockets_pass.set()
    await site.everywhere(tab, "user: early", "assistant: here you are")
    assert site.inside.ends == ["completed"]


@HOOKS
async def test_what_is_said_without_a_line_is_answered_once_it_is_back(site: AnySite, hooks: str):
    """3.4.2 after a reconnect."""
    site.model.add("first answer", "second answer")
    tab = await site.tab(hooks)
    tab.forgive(LOST_LINE)
    await tab.say("hello")
    await tab.rests_with("user: hello", "assistant: first answer")
    site.relay.sockets_pass.clear()
    site.relay.cut()
    await tab.run("new Promise(done => agent.readyState !== 1 ? done() : agent.onclose = done)")
    await tab.say("again")
    await tab.mentions("", 3)
    site.relay.sockets_pass.set()
    shown = ("user: hello", "assistant: first answer", "user: again", "assistant: second answer")
    await site.everywhere(tab, *shown)
    assert site.inside.ends == ["completed", "completed"]


@HOOKS
async def test_questions_that_cross_an_answer_on_a_slow_line_stay_in_order(
    site: AnySite, hooks: str
):
    """DESIGN §8.13: one before the first answer begins, one while that answer streams."""
    gate = Gate()
    site.model.add(speech("first ", gate, "answer"), "second answer", "third answer")
    tab = await site.tab(hooks)
    site.relay.delays = SLOW
    await tab.say_fast("one", "two")
    await tab.mentions("assistant: first", 1)
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


@HOOKS
async def test_twenty_quick_questions_on_a_slow_line_are_answered_in_order(
    site: AnySite, hooks: str
):
    """DESIGN §8.13: 15 ms apart, twenty times faster than the line answers."""
    numbers = range(1, 21)
    site.model.add(*(speech(f"answer {number} in a few words") for number in numbers))
    tab = await site.tab(hooks)
    other = await site.tab(hooks)
    site.relay.delays = SLOW
    await tab.say_fast(*(f"question {number}" for number in numbers), pause=15)
    await site.turns_ended(20)
    lines = [
        line
        for number in numbers
        for line in (f"user: question {number}", f"assistant: answer {number} in a few words ")
    ]
    await other.rests_with(*lines)
    await site.everywhere(tab, *lines)


@HOOKS
async def test_several_questions_across_a_lost_slow_line_are_shown_in_order(
    site: AnySite, hooks: str
):
    """DESIGN §8.13, spec/01 §10.4: answers end while the page is on its way to join them."""
    gates = [Gate(), Gate(), Gate()]
    answers = [speech(f"answer {n} ", gate, "whole") for n, gate in enumerate(gates, 1)]
    site.model.add(*answers)
    tab = await site.tab(hooks)
    tab.forgive(LOST_LINE)
    site.relay.delays = SLOW
    await tab.say_fast("one", "two", "three")
    await tab.mentions("assistant: answer 1", 1)
    await site.lose_the_line()
    for gate in gates:
        await gate.reached()
        gate.open()
    await site.everywhere(
        tab,
        "user: one",
        "assistant: answer 1 whole ",
        "user: two",
        "assistant: answer 2 whole ",
        "user: three",
        "assistant: answer 3 whole ",
    )
