"""`app.agent(cls, name)`: which members cross, and what the others say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.server.fakes import FakeHost
from thinkwell.host.client import AgentAddress
from thinkwell.host.stub import AgentStub


class Assistant:
    state = 1

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


@pytest.mark.parametrize("member", ["_hidden", "missing"])
def test_private_and_unknown_names_do_not_exist(stub: AgentStub, member: str):
    assert not hasattr(stub, member)


def test_nothing_is_contacted_by_making_a_stub(stub: AgentStub, host: FakeHost):
    assert repr(stub) == "<stub of Assistant 'alice'>"
    assert host.calls == []
