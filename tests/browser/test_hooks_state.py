"""State and calls through `useAgent` and `AgentClient` as they are (spec/01 §4, §5)."""

from __future__ import annotations

from typing import Any

from tests.browser.hooks.script import EVERYWHERE, HOOKS, MARKS
from tests.browser.hooks.site import AnySite
from tests.browser.hooks.tab import LOST_LINE, AnyTab

pytestmark = [*MARKS, EVERYWHERE]

STREAM = """async ([method, args]) => {
  const heard = [];
  const ended = new Promise((done) => {
    const stream = {
      onChunk: (chunk) => heard.push(chunk),
      onDone: (last) => done({ heard, last }),
      onError: (error) => done({ heard, error }),
    };
    (window.client ?? window.agent).call(method, args, { stream }).catch(() => {});
  });
  return ended;
}"""
FAIL = "([method, args]) => (window.client ?? window.agent).call(method, args).catch(String)"


async def stream(tab: AnyTab, method: str, *args: Any) -> Any:
    return await tab.run(STREAM, [method, list(args)])


async def failure(tab: AnyTab, method: str, *args: Any) -> str:
    return await tab.run(FAIL, [method, list(args)])


async def state_is(tab: AnyTab, text: str) -> None:
    await tab.label_is("State", text)


@HOOKS
async def test_the_hook_shows_the_state_and_changes_it_for_everybody(site: AnySite, hooks: str):
    """Cases 3 and 8: both ways, in both tabs, and after a reload."""
    tab, other = [await site.tab(hooks, agent="stateful") for _ in range(2)]
    await state_is(tab, '{"count":0}')
    await tab.run("agent.setState({ count: 3 })")
    for each in (tab, other):
        await state_is(each, '{"count":3}')
    assert await other.run("agent.call('addToCount', [4])") == {"count": 7}
    for each in (tab, other):
        await state_is(each, '{"count":7}')
    await tab.reload()
    await state_is(tab, '{"count":7}')
    await tab.label_is("Identity", "stateful/default")


@HOOKS
async def test_a_refused_state_is_told_to_the_one_who_wanted_it(site: AnySite, hooks: str):
    """Case 9."""
    tab, other = [await site.tab(hooks, agent="stateful") for _ in range(2)]
    await tab.run("agent.setState({ count: -1 })")
    await tab.label_is("Refusal", "State update rejected")
    await other.label_is("Refusal", "")
    await state_is(other, '{"count":0}')
    await tab.reload()
    await state_is(tab, '{"count":0}')


@HOOKS
async def test_the_hook_calls_methods_of_every_kind(site: AnySite, hooks: str):
    """Cases 10 to 13, on a chat agent."""
    tab = await site.tab(hooks, agent="stateful")
    assert await tab.run("agent.call('add', [1, 2])") == 3
    assert await tab.run("agent.stub.add(3, 4)") == 7
    assert await stream(tab, "count_to", 3) == {"heard": [1, 2, 3], "last": None}
    assert await failure(tab, "fail") == "Error: no such luck"


async def test_the_plain_client_reads_and_writes_the_state(site: AnySite):
    """Cases 3 and 8 with `AgentClient`, on an agent that does not chat."""
    tab, other = [await site.tab("client", agent="counter") for _ in range(2)]
    assert await tab.run("[client.agent, client.name]") == ["counter", "default"]
    assert await tab.run("states") == [[{"count": 0}, "server"]]
    await tab.run("client.setState({ count: 5 })")
    await other.becomes("states.length === 2")
    assert await other.run("states.at(-1)") == [{"count": 5}, "server"]
    assert await tab.run("states.at(-1)") == [{"count": 5}, "client"]


async def test_the_plain_client_calls_methods_of_every_kind(site: AnySite):
    """Cases 10 to 13."""
    tab = await site.tab("client", agent="counter")
    assert await tab.run("client.call('add', [1, 2])") == 3
    assert await tab.run("client.stub.addToCount(2)") == {"count": 2}
    assert await stream(tab, "count_to", 2) == {"heard": [1, 2], "last": None}
    assert await stream(tab, "write", "hi") == {"heard": ["hi"], "last": "hi!"}
    ended = await stream(tab, "write_and_fail")
    assert ended == {"heard": ["so far"], "error": "no such luck"}
    assert await failure(tab, "fail") == "Error: no such luck"
    assert await failure(tab, "hidden") == "Error: Method hidden is not callable"
    assert await failure(tab, "nothing") == "Error: Method nothing does not exist"
    many = "Promise.all([...Array(50).keys()].map((n) => client.call('add', [n, n])))"
    assert await tab.run(many) == [2 * n for n in range(50)]


async def test_who_may_only_look_sees_the_state_and_cannot_change_it(site: AnySite):
    """Case 7, without chat."""
    tab = await site.tab("client", agent="counter", readonly="1")
    assert await tab.run("client.call('add', [1, 2])") == 3
    assert await failure(tab, "addToCount", 1) == "Error: Connection is readonly"
    await tab.run("client.setState({ count: 5 })")
    await tab.becomes("refusals.length === 1")
    assert await tab.run("refusals") == ["Connection is readonly"]
    other = await site.tab("client", agent="counter")
    assert await other.run("states") == [[{"count": 0}, "server"]]


async def test_a_client_that_lost_its_line_gets_the_newest_state(site: AnySite):
    """Case 73: the same connection id, a whole connect sequence."""
    tab = await site.tab("client", agent="counter")
    tab.forgive(LOST_LINE)
    await site.lose_the_line()
    await tab.becomes("states.length === 2")
    assert await tab.run("client.call('addToCount', [1])") == {"count": 1}
    await tab.becomes("states.length === 3")
    assert await tab.run("states.at(-1)") == [{"count": 1}, "server"]
