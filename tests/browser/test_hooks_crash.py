"""`kill -9` of the server in the middle of an answer: what a person in front of it sees (§12)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.browser.hooks.killable import KillableSite
from tests.browser.hooks.place import Place
from tests.browser.hooks.script import EVERYWHERE, HOOKS, MARKS
from tests.browser.hooks.site import OpenTab
from tests.browser.hooks.tab import LOST_LINE, AnyTab
from tests.crash.plan import read_plan

pytestmark = [*MARKS, EVERYWHERE]

REFUSED = "net::ERR_"
"""How Chromium complains about a server that is not there."""


@pytest.fixture
async def site(
    open_tab: OpenTab[AnyTab], place: Place, tmp_path: Path
) -> AsyncIterator[KillableSite]:
    async with KillableSite(open_tab, place, tmp_path) as site:
        yield site


@HOOKS
async def test_an_answer_goes_on_after_the_server_was_killed(site: KillableSite, hooks: str):
    """Cases 48 and 72: one bubble, every word once, while the page stays open."""
    question = "long|say:20,hold:middle,say:20"
    answer = read_plan(question).text
    site.world.hold("middle")
    tab = await site.tab(hooks)
    tab.forgive(LOST_LINE, REFUSED)
    await tab.say(question)
    half = answer[: answer.index("long.0.20")]
    await tab.shows(f"user: {question}", f"assistant: {half}")
    await site.kill()
    await tab.mentions("", 2)
    await site.serve()
    await tab.shows(f"user: {question}", f"assistant: {half}")
    site.world.release("middle")
    await site.everywhere(tab, f"user: {question}", f"assistant: {answer}")


@HOOKS
async def test_a_page_opened_after_the_crash_sees_the_whole_answer(site: KillableSite, hooks: str):
    """The page is gone with the server; whoever comes back finds the turn at work or done."""
    question = "tools|say:5,pure;say:10,hold:middle,say:10"
    plan = read_plan(question)
    site.world.hold("middle")
    tab = await site.tab(hooks)
    tab.forgive(LOST_LINE, REFUSED)
    await tab.say(question)
    await tab.mentions("tools.1.9", 1)
    await tab.close()
    await site.kill()
    site.world.release("middle")
    await site.serve()
    tab = await site.tab(hooks)
    called = 'pure output-available {"note":"tools.0.0"} "did tools.0.0"'
    said = [step.text.strip() for step in plan.steps]
    shown = f"assistant: {said[0]} | {called} | {said[1]}"
    await site.everywhere(tab, f"user: {question}", shown)


@HOOKS
async def test_a_call_that_waits_for_a_person_waits_through_a_crash(site: KillableSite, hooks: str):
    """§11.14: nothing is lost while somebody decides; the call runs once."""
    question = "ask|say:5,once;say:5"
    plan = read_plan(question)
    tab = await site.tab(hooks, agent="careful")
    tab.forgive(LOST_LINE, REFUSED)
    await tab.say(question)
    said = [step.text.strip() for step in plan.steps]
    note = '{"note":"ask.0.0"}'
    asked = f"assistant: {said[0]} | once approval-requested {note}"
    await tab.rests_with(f"user: {question}", asked)
    await site.kill()
    await site.serve()
    await tab.rests_with(f"user: {question}", asked)
    await tab.press("Allow once")
    done = f'once output-available {note} "did ask.0.0"'
    await tab.rests_with(f"user: {question}", f"assistant: {said[0]} | {done} | {said[1]}")
    assert len(site.world.effects("ask.0.0")) == 1


async def test_plain_use_chat_finds_the_whole_answer_after_a_crash(site: KillableSite):
    """§14.5: the broken request is an error on the page; a reload resumes the turn."""
    question = "long|say:20,hold:middle,say:5,hold:late,say:15"  # what goes on stops once more
    answer = read_plan(question).text
    site.world.hold("middle")
    site.world.hold("late")
    tab = await site.tab("use-chat")
    tab.forgive(REFUSED)
    await tab.say(question)
    await tab.mentions("long.0.19", 1)
    await site.kill()
    await tab.status_is("error")
    # The space behind the last word may not be stored: then the next process would wait here, too.
    site.world.release("middle")
    await site.serve()
    await tab.reload()
    await tab.mentions("long.0.24", 1)
    site.world.release("late")
    await site.everywhere(tab, f"user: {question}", f"assistant: {answer}")
