"""`app.agent(cls, name)`: which members cross, and what the others say."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from tests.unit.server.fakes import FakeHost
from thinkwell import App, Think
from thinkwell.core.errors import ConfigurationError
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.host.stub import AgentStub
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel


class Assistant:
    state = 1
    jobs: object
    _turns: object

    async def ask(self, text: str, *, loud: bool = False) -> str:
        return text

    async def count(self) -> AsyncIterator[int]:
        yield 1

    def follow(self) -> AsyncIterator[int]:
        return self.count()

    def plain(self) -> None: ...

    async def _hidden(self) -> None: ...


@pytest.fixture
def host():
    return FakeHost()


@pytest.fixture
def stub(host: FakeHost):
    return AgentStub(Assistant, AgentAddress("assistant", "alice"), lambda: host)


async def test_an_async_method_is_called_at_the_host(stub: AgentStub, host: FakeHost):
    assert await stub.ask("hi", loud=True) == "answer"
    assert host.calls == [(AgentAddress("assistant", "alice"), "ask", ("hi",), {"loud": True})]


@pytest.mark.parametrize("method", ["count", "follow"])
async def test_a_method_that_gives_an_async_iterator_is_followed(stub: AgentStub, method: str):
    assert [item async for item in getattr(stub, method)()] == [1, 2]


@pytest.mark.parametrize("member", ["state", "plain"])
def test_anything_else_says_what_to_write(stub: AgentStub, member: str):
    with pytest.raises(AttributeError, match=rf'app.agent\(Assistant, "alice"\).{member}'):
        getattr(stub, member)


class Advised(Think):
    model = "demo"

    @property
    def size(self) -> int:
        return 3

    def hello(self) -> str:
        return "hello"

    def add(self, a: int, *more: int, b: int = 2) -> int:
        return a + sum(more) + b

    @staticmethod
    def double(n: int) -> int:
        return 2 * n


@pytest.mark.parametrize(
    ("member", "given", "gives"),
    [
        ("size", (), 3),
        ("hello", (), "hello"),
        ("double", (4,), 8),
    ],
)
async def test_what_it_says_works_when_it_is_written(member: str, given: Any, gives: Any):
    stub: Any = AgentStub(Advised, AgentAddress("advised", "alice"), FakeHost)
    with pytest.raises(AttributeError) as told:
        getattr(stub, member)
    method, call = re.findall(r"`(async def .*?)`.*`await .*\.(\w+)\(", str(told.value))[0]
    names: dict[str, Any] = {"Advised": Advised}
    exec(f"class More(Advised):\n    {method}", names)
    async with App([names["More"]], store="sqlite://:memory:") as app:
        assert await getattr(app.agent(names["More"]), call)(*given) == gives


def test_it_passes_on_every_kind_of_parameter():
    stub: Any = AgentStub(Advised, AgentAddress("advised", "alice"), FakeHost)
    with pytest.raises(
        AttributeError,
        match=re.escape("`async def call_add(self, a, *more, b): return self.add(a, *more, b=b)`"),
    ):
        _ = stub.add


def test_hooks_are_added_by_the_agent_itself():
    stub: Any = AgentStub(Advised, AgentAddress("advised", "alice"), FakeHost)
    with pytest.raises(AttributeError, match=r"async def on_start\(self\): self.add_hook"):
        stub.add_hook("before_turn", print)


def test_nothing_can_be_set_on_a_stub_where_the_agent_would_not_see_it(stub: AgentStub):
    with pytest.raises(AttributeError, match="`model` cannot be set from outside an agent"):
        stub.model = "demo"
    assert "model" not in vars(stub)


async def test_a_method_of_a_namespace_is_called_at_the_host(stub: AgentStub, host: FakeHost):
    assert await stub.jobs.enqueue("mail", to="ann") == "answer"
    assert host.calls[0][1:] == ("jobs.enqueue", ("mail",), {"to": "ann"})


async def test_a_feature_of_the_app_is_a_namespace(host: FakeHost):
    address = AgentAddress("assistant", "alice")
    stub = AgentStub(Assistant, address, lambda: host, features=["notes"])
    assert await stub.notes.read() == "answer"
    assert host.calls[0][1] == "notes.read"


@pytest.mark.parametrize("member", ["_hidden", "missing", "_turns"])
def test_private_and_unknown_names_do_not_exist(stub: AgentStub, member: str):
    assert not hasattr(stub, member)


def test_nothing_is_contacted_by_making_a_stub(stub: AgentStub, host: FakeHost):
    assert repr(stub) == "<stub of Assistant 'alice'>"
    assert host.calls == []


async def test_a_method_of_a_namespace_can_be_called_from_outside():
    class Reader(Think):
        model = ScriptedModel(["hello"])

    host = Host([Reader], SqliteStore(":memory:"))
    await host.start()
    reader = cast("Reader", AgentStub(Reader, AgentAddress("reader", "x"), host.client))
    await reader.run("hi")
    assert [message["role"] for message in await reader.session.get_history()] == [
        "user",
        "assistant",
    ]
    with pytest.raises(ConfigurationError, match=r"scopes\.get_snapshot is not async"):
        await cast("Any", reader.scopes).get_snapshot()
    with pytest.raises(ConfigurationError, match="no public method"):
        await host.client().call(AgentAddress("reader", "x"), "_turns.clear", (), {})
    await host.stop()
