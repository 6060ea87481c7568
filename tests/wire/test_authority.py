"""Who may do what, over real sockets and real requests (DESIGN §8.12).

Every action against every kind of client. What is refused leaves no trace, and the tab that asked
shows what is true.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from tests.wire.client import Tab, kind_of
from tests.wire.room import Chat, Room, room
from thinkwell import Connection, HttpRequest, Principal, Subject, TurnConfig, rpc, tool
from thinkwell.messages.message import user_message
from thinkwell.testing import call, pause
from thinkwell.tools.tool import as_tool, client_tool

NAMES = {"ann": "ann", "bob": "bob", "guest": "guest", "boss": "boss"}


class Office(Chat, name="office"):
    """Transfers money when somebody allows it. Guests may only look."""

    initial_state = {"n": 0}
    time_limits = {"grace": 0.0}
    ran: list[str]

    async def on_start(self) -> None:
        self.ran = []

    def should_connection_be_readonly(self, connection: Connection, request: HttpRequest) -> bool:
        return request.query.get("who") == "guest"

    def should_request_be_readonly(self, request: HttpRequest) -> bool:
        return request.query.get("who") == "guest"

    @tool(needs_approval=True)
    async def transfer(self) -> str:
        """Pay."""
        self.ran.append("transfer")
        return "paid"

    @tool(needs_approval=True, approvers={"boss"})
    async def fire(self) -> str:
        """Needs the boss."""
        self.ran.append("fire")
        return "fired"

    def get_tools(self) -> Any:
        return {"locate": client_tool("locate")}

    @rpc
    async def change(self) -> str:
        return "changed"

    @rpc(read_only=True)
    async def show(self) -> str:
        return "shown"

    def on_request(self, request: HttpRequest) -> Any:
        return self.ran if request.path == "ran" else None


def auth(request: Any, route: Any) -> Principal | None:
    who = request.query_params.get("who")
    return Principal(id=NAMES[who]) if who in NAMES else None


@asynccontextmanager
async def office(
    *steps: Any, cls: type[Any] = Office, store: Path | None = None, known: bool = True
) -> AsyncIterator[Room]:
    """An office; unless `known`, nobody says who they are."""
    options: dict[str, Any] = {"auth": auth} if known else {}
    async with room(*steps, cls=cls, store=store, **options) as r:
        yield r


async def asked(r: Room, *, who: str = "ann") -> Tab:
    """A tab whose turn has ended."""
    tab = await r.tab(who, who=who)
    await tab.ask("please")
    await tab.stream()
    return tab


async def post(r: Room, path: str, who: str, body: Any = None) -> tuple[int, str]:
    url = f"{r.browser.url}{r.path}/{path}"
    async with r.browser.session.post(url, params={"who": who}, json=body or {}) as answer:
        return answer.status, await answer.text()


async def transcript(r: Room) -> list[dict[str, Any]]:
    status, text = await r.browser.get(f"{r.path}/get-messages?who=ann")
    assert status == 200
    return json.loads(text)


async def ran(r: Room) -> list[str]:
    return json.loads((await r.browser.get(f"{r.path}/ran?who=ann"))[1])


def part_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return next(p for m in messages for p in m["parts"] if p.get("toolCallId") == "call-1")


# Each action: what is there before, how a client asks for it, and whether it happened.


async def try_send(r: Room, tab: Tab, who: str) -> bool:
    await tab.ask("me too", "q2", after=await transcript(r))
    end = (await tab.stream("q2")).end
    return not end.get("error") and len(await transcript(r)) == 4


async def try_edit(r: Room, tab: Tab, who: str) -> bool:
    await tab.request("q2", [user_message("u-q1", "changed")])
    end = (await tab.stream("q2")).end
    return not end.get("error") and (await transcript(r))[0]["parts"][0]["text"] == "changed"


async def try_regenerate(r: Room, tab: Tab, who: str) -> bool:
    await tab.regenerate("q2", (await transcript(r))[:1])
    end = (await tab.stream("q2")).end
    return not end.get("error") and (await transcript(r))[1]["parts"][-1]["text"] == "second"


async def try_clear(r: Room, tab: Tab, who: str) -> bool:
    await tab.clear()
    await tab.before_now()
    return await transcript(r) == []


async def try_branch(r: Room, tab: Tab, who: str) -> bool:
    await tab.send(type="rpc", id="b", method="setActiveLeaf", args=["u-q1"])
    return (await tab.until("rpc", id="b"))["success"]


async def try_state(r: Room, tab: Tab, who: str) -> bool:
    await tab.set_state({"n": 1})
    await tab.before_now()
    return (await r.tab(who="ann")).greeting[-2]["state"] == {"n": 1}


async def try_call(r: Room, tab: Tab, who: str) -> bool:
    (answer,) = await tab.call("change")
    return answer["success"]


async def try_run(r: Room, tab: Tab, who: str) -> bool:
    status, _ = await post(r, "run", who, {"input": "hi"})
    assert status in (200, 403)
    return status == 200


async def try_post(r: Room, tab: Tab, who: str) -> bool:
    messages = [*await transcript(r), user_message("u-2", "me too")]
    status, _ = await post(r, "chat", who, {"messages": messages})
    assert status in (200, 403)
    return status == 200


Try = Callable[[Room, Tab, str], Awaitable[bool]]
OPEN_TO_ALL_WHO_SEND: list[Try] = [
    *(try_send, try_edit, try_regenerate, try_clear, try_branch, try_state),
    *(try_call, try_run, try_post),
]


@pytest.mark.parametrize("act", OPEN_TO_ALL_WHO_SEND, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("who", "allowed"), [("guest", False), ("bob", True), ("ann", True), ("nobody", True)]
)
async def test_what_everybody_may_but_those_who_only_look(act: Try, who: str, *, allowed: bool):
    async with office("first", "second", known=who != "nobody") as r:
        await asked(r)
        tab = await r.tab(who=who)
        before = await transcript(r)
        assert await act(r, tab, who) is allowed
        if not allowed:
            assert await transcript(r) == before


async def test_whoever_only_looks_may_call_what_only_shows():
    async with office("first") as r:
        await asked(r)
        tab = await r.tab(who="guest")
        assert (await tab.call("show"))[0]["result"] == "shown"
        assert (await tab.call("getBranches", None))[0]["success"]


@pytest.mark.parametrize("way", ["socket", "http"])
@pytest.mark.parametrize(("who", "allowed"), [("guest", False), ("bob", True), ("ann", True)])
async def test_who_may_cancel(way: str, who: str, *, allowed: bool):
    gate = pause()
    async with office([gate, "late"]) as r:
        ann, tab = await r.tab("ann", who="ann"), await r.tab("other", who=who)
        await ann.ask("please")
        await gate.reached()
        if way == "http":
            assert (await post(r, "chat/stop", who))[0] == (204 if allowed else 403)
        else:
            await tab.cancel("q1")
            await tab.before_now()
        if not allowed:
            gate.open()
        assert (await ann.stream()).end["outcome"] == ("aborted" if allowed else "completed")


async def by_socket(r: Room, tab: Tab, who: str, tool_name: str) -> None:
    if tool_name == "locate":
        await tab.result(toolName="locate", output="Rome")
    else:
        await tab.decide(approved=True)
    await tab.before_now()


async def by_http(r: Room, tab: Tab, who: str, tool_name: str) -> None:
    messages = await transcript(r)
    part = part_of(messages)
    if tool_name == "locate":
        part.update(state="output-available", output="Rome")
    else:
        part.update(state="approval-responded", approval={**part["approval"], "approved": True})
    status, _ = await post(r, "chat", who, {"messages": messages})
    assert status in (200, 403)


# The tool, who answers, and whether it counts: ann has asked.
ANSWERS = [
    ("transfer", "guest", False),
    ("transfer", "bob", False),
    ("transfer", "boss", False),
    ("transfer", "ann", True),
    ("fire", "guest", False),
    ("fire", "ann", False),
    ("fire", "boss", True),
    ("locate", "guest", False),
    ("locate", "bob", False),
    ("locate", "ann", True),
]


@pytest.mark.parametrize("way", [by_socket, by_http], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("tool_name", "who", "allowed"), ANSWERS)
async def test_who_may_answer(way: Any, tool_name: str, who: str, *, allowed: bool, tmp_path: Path):
    path = tmp_path / "x.db"
    async with office([call(tool_name)], "done", store=path) as r:
        await asked(r)
        waiting = part_of(await transcript(r))["state"]
        tab = await r.tab("other", who=who)
        await way(r, tab, who, tool_name)
        if allowed:
            while not part_of(await transcript(r))["state"].startswith("output"):
                await tab.before_now()
        else:
            assert part_of(await transcript(r))["state"] == waiting
            assert await ran(r) == []
    rows = decisions(path)
    action = "answer" if tool_name == "locate" else "approve"
    assert rows == ([(action, tool_name, {"id": who}, 1)] if allowed else [])


def decisions(path: Path) -> list[tuple[Any, ...]]:
    """What SQL says about who decided."""
    with closing(sqlite3.connect(path)) as link, link:
        rows = link.execute("SELECT action, tool_name, principal, by_client FROM decisions")
        return [(a, t, p and {"id": json.loads(p)["id"]}, c) for a, t, p, c in rows]


async def test_what_was_allowed_runs_only_for_those_who_could_have_allowed_it():
    """The answer waits to go on; whoever lets it go on runs the call in it."""
    async with office([call("transfer")], "done") as r:
        ann = await asked(r)
        await ann.decide(approved=True, autoContinue=False)
        await ann.until("message_updated")
        messages = await transcript(r)
        assert (await post(r, "chat", "bob", {"messages": messages}))[0] == 403
        assert await ran(r) == []
        assert (await post(r, "chat", "ann", {"messages": messages}))[0] == 200
        assert await ran(r) == ["transfer"]


class Lender(Office, name="office"):
    """Its tool does not stand in the class."""

    def get_tools(self) -> Any:
        async def lend() -> str:
            """Pay."""
            return "lent"

        return {"lend": tool(needs_approval=True)(lend)}


async def test_nobody_says_what_came_of_a_call_that_the_server_runs():
    async with office([call("lend")], "done", cls=Lender) as r:
        ann = await asked(r)
        await ann.result(toolName="lend", output="forged")
        await ann.before_now()
        messages = await transcript(r)
        part_of(messages).update(state="output-available", output="forged")
        await post(r, "chat", "ann", {"messages": messages})
        assert part_of(await transcript(r))["state"] == "approval-requested"


class Deputy(Office, name="office"):
    """Its tool comes with one turn only, and names who may allow it."""

    named: Any = {"boss"}

    async def before_turn(self, ctx: Any) -> TurnConfig | None:
        if ctx.continuation:
            return None

        async def lend() -> str:
            """Pay."""
            return "lent"

        return TurnConfig(
            tools={"lend": as_tool(tool(needs_approval=True, approvers=self.named)(lend))}
        )


class Asking(Deputy, name="office"):
    """A function of the tool decides, and is gone with it."""

    named = staticmethod(lambda principal, subject: True)


@pytest.mark.parametrize(
    ("cls", "who", "state"),
    [
        (Deputy, "ann", "approval-requested"),
        (Deputy, "boss", "approval-responded"),
        (Asking, "ann", "approval-requested"),
    ],
)
async def test_a_tool_of_one_turn_still_names_who_may_allow_it(cls: Any, who: str, state: str):
    """Whom it named is stored with the question: the tool is gone when the answer comes."""
    async with office([call("lend")], "done", cls=cls) as r:
        await asked(r)
        tab = await r.tab("decides", who=who)
        await tab.decide(approved=True, autoContinue=False)
        await tab.before_now()
        assert part_of(await transcript(r))["state"] == state


async def test_where_nobody_is_known_whoever_may_send_may_approve(tmp_path: Path):
    path = tmp_path / "x.db"
    async with office([call("transfer")], "done", store=path, known=False) as r:
        await asked(r)
        guest = await r.tab("g", who="guest")
        await guest.decide(approved=True)
        await guest.before_now()
        assert part_of(await transcript(r))["state"] == "approval-requested"
        other = await r.tab("other")
        await other.decide(approved=True)
        await other.until("message_updated")
    assert decisions(path) == [("approve", "transfer", None, 1)]


async def test_the_tab_of_a_refused_answer_is_told_how_things_stand():
    async with office([call("transfer")], "done") as r:
        await asked(r)
        tab = await r.tab("other", who="bob")
        await tab.decide(approved=True)
        (told,) = await tab.before_now()
        assert kind_of(told) == "message_updated"
        assert part_of([told["message"]])["state"] == "approval-requested"


@pytest.mark.parametrize("act", ["clear", "cancel"])
async def test_the_tab_of_a_refused_clear_or_cancel_gets_the_conversation_back(act: str):
    async with office("first") as r:
        await asked(r)
        tab = await r.tab(who="guest")
        await getattr(tab, act)()
        told = await tab.before_now()
        assert [kind_of(frame) for frame in told] == ["chat_messages"]
        assert [m["role"] for m in told[0]["messages"]] == ["user", "assistant"]


async def test_a_refused_question_is_taken_off_the_tab_and_answered_with_an_error():
    async with office("first") as r:
        await asked(r)
        tab = await r.tab(who="guest")
        await tab.ask("me too", "q2")
        shown = await tab.expect("chat_messages")
        assert [m["id"] for m in shown["messages"]][:1] == ["u-q1"]
        assert "u-q2" not in [m["id"] for m in shown["messages"]]
        await tab.expect("use_chat_response", id="q2", done=True, error=True)


async def test_a_refused_state_is_followed_by_the_true_one():
    async with office() as r:
        tab = await r.tab(who="guest")
        await tab.set_state({"n": 5})
        await tab.expect("state_error", error="Connection is readonly")
        await tab.expect("state", state={"n": 0})


class Strict(Office, name="office"):
    """Says in its own words who may."""

    asked: list[tuple[str, str | None, Subject]]

    async def on_start(self) -> None:
        await super().on_start()
        self.asked = []

    async def authorize(self, action: Any, principal: Principal | None, subject: Subject) -> bool:
        self.asked.append((action, principal and principal.id, subject))
        if principal is not None and principal.id == "boss":
            raise RuntimeError("cannot find out")
        return bool(super().authorize(action, principal, subject)) and action != "clear"

    @rpc
    async def questions(self) -> list[Any]:
        return [[action, who, s.method or s.tool_name] for action, who, s in self.asked]


async def test_an_agents_own_authorize_is_asked_for_every_action():
    async with office([call("transfer")], "done", cls=Strict) as r:
        tab = await asked(r)
        await tab.decide(approved=True)
        while await ran(r) != ["transfer"]:
            await tab.before_now()
        await tab.clear()
        await tab.before_now()
        assert len(await transcript(r)) == 2
        await tab.send(type="rpc", id="c", method="questions", args=[])
        assert (await tab.until("rpc", id="c"))["result"] == [
            ["send", "ann", None],
            ["approve", "ann", "transfer"],
            ["clear", "ann", None],
            ["call", "ann", "questions"],
        ]


async def test_an_authorize_that_fails_allows_nothing():
    async with office("first", cls=Strict) as r:
        tab = await r.tab(who="boss")
        await tab.ask("hi")
        assert (await tab.stream()).end["error"] is True
        assert await transcript(r) == []
        assert (await post(r, "run", "boss", {"input": "hi"}))[0] == 403


async def test_what_python_code_decides_is_recorded_as_such(tmp_path: Path):
    path = tmp_path / "x.db"
    async with office([call("transfer")], "done", store=path) as r:
        await asked(r)
        assert await r.agent.respond_to_approval("call-1", approved=True)
        while not part_of(await transcript(r))["state"].startswith("output"):
            pass
    assert decisions(path) == [("approve", "transfer", None, 0)]


async def test_a_clear_erases_who_decided(tmp_path: Path):
    path = tmp_path / "x.db"
    async with office([call("transfer")], "done", store=path) as r:
        tab = await asked(r)
        await tab.decide(approved=False)
        await tab.until("message_updated")
        await tab.clear()
        await tab.before_now()
    assert decisions(path) == []
