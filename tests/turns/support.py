"""A running agent, a client and a log of everything that happens, for the tests of the turn.

`running(Agent, *steps)` starts a real host on a real SQLite store and wakes one agent that talks to
a `ScriptedModel`. `Client` stands where a WebSocket would. `LoggingStore` is the real store with a
diary: what a transaction did is written down when it has committed, so that the order of hooks,
storage and frames can be compared. It can also suspend wherever the contract lets a store suspend.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import pytest

from thinkwell import Think
from thinkwell.core import json
from thinkwell.core.errors import StoreUnavailableError
from thinkwell.core.events import Event
from thinkwell.core.principal import Principal
from thinkwell.host.client import AgentAddress, EdgeConnection
from thinkwell.host.host import Host
from thinkwell.journal.packing import unpack_stream
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import UIMessage, user_message
from thinkwell.store.base import Params, Row, Store, Transaction
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_link import SqliteLink
from thinkwell.testing import ScriptedModel
from thinkwell.wire.encode import Frame
from thinkwell.wire.http import HttpRequest

AgentT = TypeVar("AgentT", bound=Think)


class Log(list[str]):
    """Lines in the order things happened; a test can wait for one."""

    def __init__(self) -> None:
        super().__init__()
        self._news = asyncio.Event()

    def append(self, line: str, /) -> None:
        super().append(line)
        self._news.set()

    async def until(self, start: str) -> None:
        """Wait until some line begins like that."""
        while not any(line.startswith(start) for line in self):
            self._news.clear()
            await self._news.wait()


class _Sink:
    """Where the host puts a client's frames."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, frames: Sequence[Frame], *, apart: bool = False) -> None:
        self._client.take([str(frame) for frame in frames])

    def close(self, code: int, reason: str) -> None:
        self._client.closed = (code, reason)


class Client:
    """What a browser tab sees and says."""

    def __init__(self, log: Log) -> None:
        self.frames: list[dict[str, Any]] = []
        self._shown: list[UIMessage] = []
        self._log = log
        self._news = asyncio.Event()
        self.connection: EdgeConnection | None = None
        self.sink = _Sink(self)
        self.closed: tuple[int, str] | None = None

    def take(self, texts: Sequence[str]) -> None:
        """Take frames from the host."""
        for text in texts:
            frame = json.loads(text)
            self.frames.append(frame)
            self._show(frame)
            self._log.append(f"frame {name_of(frame)}")
        self._news.set()

    async def send(self, **frame: Any) -> None:
        """Send one frame as the client would."""
        assert self.connection is not None
        await self.connection.receive(json.dumps(frame))

    async def ask(self, text: str, request_id: str = "q1", **body: Any) -> None:
        """Send a chat request with one new user message."""
        message = user_message(f"u-{request_id}", text)
        await self.request(request_id, messages=[message], **body)

    async def request(self, request_id: str, **body: Any) -> None:
        """Send a chat request with any body."""
        init = {"method": "POST", "body": json.dumps(body)}
        for message in body.get("messages", []):
            if isinstance(message, dict) and "id" in message:
                self._keep(cast("UIMessage", message))
        await self.send(type="cf_agent_use_chat_request", id=request_id, init=init)

    async def until(self, seen: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a frame that may have come already."""
        while True:
            for frame in self.frames:
                if seen(frame):
                    return frame
            self._news.clear()
            await self._news.wait()

    async def until_end(self, request_id: str = "q1") -> dict[str, Any]:
        """Wait for the terminal frame of a request."""
        return await self.until(lambda frame: frame in self.ends(request_id))

    def ends(self, request_id: str = "q1") -> list[dict[str, Any]]:
        """The terminal frames of a request."""
        frames = [frame for frame in self.frames if frame.get("id") == request_id]
        return [frame for frame in frames if frame.get("done")]

    def chunks(self, request_id: str = "q1") -> list[dict[str, Any]]:
        """The chunks of a request, in the order they came."""
        frames = [f for f in self.frames if f.get("id") == request_id and f.get("body")]
        return [json.loads(frame["body"]) for frame in frames if not frame.get("done")]

    def transcript(self) -> list[UIMessage]:
        """What it shows: the last transcript, its questions since then, answers as stored."""
        return self._shown

    def _show(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "cf_agent_chat_messages":
            self._shown = list(frame["messages"])
        elif frame["type"] == "cf_agent_chat_clear":
            self._shown = []
        elif frame["type"] == "cf_agent_message_updated":
            self._keep(frame["message"])

    def _keep(self, message: UIMessage) -> None:
        ids = [known["id"] for known in self._shown]
        if message["id"] in ids:
            self._shown[ids.index(message["id"])] = message
        else:
            self._shown.append(message)


class Stage(Generic[AgentT]):
    """One running agent and everything a test looks at."""

    def __init__(self, host: Host, agent: AgentT, model: ScriptedModel, log: Log) -> None:
        self.host = host
        self.agent = agent
        self.model = model
        self.log = log
        self.events: list[Event] = []
        host.bus.subscribe(self.events.append)

    async def connect(
        self, connection_id: str = "tab", *, principal: Principal | None = None, **query: str
    ) -> Client:
        """Open a connection."""
        client = Client(self.log)
        address = AgentAddress(self.agent.agent_class, self.agent.name)
        client.connection = await self.host.client().open_connection(
            address,
            connection_id,
            HttpRequest(method="GET", path="", query=query, principal=principal),
            client.sink,
        )
        return client

    def fields(self, event: str) -> list[dict[str, Any]]:
        """The fields of every event of that name."""
        return [fields_of(e) for e in self.events if e.type == event]

    async def messages(self) -> list[UIMessage]:
        """What is stored."""
        return await self.agent.get_messages()

    async def answer(self) -> UIMessage:
        """The last stored message."""
        return (await self.messages())[-1]


def fields_of(event: Event) -> dict[str, Any]:
    """What an event says, without its type and agent."""
    names = event.__struct_fields__
    return {name: getattr(event, name) for name in names if name not in ("type", "agent")}


@asynccontextmanager
async def running(
    cls: type[AgentT],
    *steps: Any,
    store: Store | None = None,
    log: Log | None = None,
    suspends: bool = False,
    drain: float = 1.0,
) -> AsyncIterator[Stage[AgentT]]:
    """Run one agent named `x` whose model plays `steps`.

    With `suspends` the store gives way to other tasks wherever a store may.
    """
    diary = Log() if log is None else log
    model = ScriptedModel(steps)
    inner = store or SqliteStore(":memory:")
    host = Host([cls], LoggingStore(inner, diary, suspends=suspends), drain_timeout=drain)
    try:
        with pytest.MonkeyPatch.context() as patch:
            if cls.model is None:  # before the start: a turn that was left unsettled runs at once
                patch.setattr(cls, "model", model)
            await host.start()
            activation = await host.agent(AgentAddress(cls.agent_class, "x"))
        agent = activation.agent
        assert isinstance(agent, cls)
        if cls.model is None:
            setattr(agent, "model", model)  # noqa: B010 - a class setting, given to one instance
        yield Stage(host, agent, model, diary)
    finally:
        await host.stop()


def name_of(frame: dict[str, Any]) -> str:
    """A short name of a frame for the log."""
    kind = frame["type"].removeprefix("cf_agent_")
    if kind != "use_chat_response":
        return kind
    if frame["done"]:
        return "error" if frame.get("error") else "done"
    return json.loads(frame["body"])["type"] if frame["body"] else "replay-complete"


def folded(chunks: Sequence[dict[str, Any]]) -> UIMessage:
    """What a client makes of chunks."""
    fold = Fold({"id": "", "role": "assistant", "parts": []})
    for chunk in chunks:
        fold.apply(chunk)
    message = fold.snapshot()
    message["id"] = next((c["messageId"] for c in chunks if c["type"] == "start"), "")
    return message


def untyped(stage: Stage[Any]) -> Any:
    """The agent, for event names and insides that its type does not know."""
    return stage.agent


async def until_event(stage: Stage[Any], name: str, count: int = 1) -> None:
    """Wait until the bus has told an event of that name so often."""
    news = asyncio.Event()
    dispose = stage.host.bus.subscribe(lambda _: news.set())
    try:
        while len(stage.fields(name)) < count:
            news.clear()
            await news.wait()
    finally:
        dispose()


def part_of(message: UIMessage, call_id: str = "call-1") -> dict[str, Any]:
    """The tool part of one call."""
    return next(part for part in message["parts"] if part.get("toolCallId") == call_id)


def fail_next_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next COMMIT of any store finds a full disk; those after it succeed."""
    commit = SqliteLink.commit

    def fail(link: SqliteLink) -> None:
        monkeypatch.setattr(SqliteLink, "commit", commit)
        link.rollback()
        raise StoreUnavailableError("the disk is full")

    monkeypatch.setattr(SqliteLink, "commit", fail)


class LoggingStore:
    """The real store; every committed transaction leaves its deeds in the log."""

    def __init__(self, inner: Store, log: Log, *, suspends: bool = False) -> None:
        self._inner = inner
        self._log = log
        self._suspends = suspends
        self.commits = 0
        """How many transactions have committed."""
        self.journalled: dict[str, int] = {}
        """How many chunks of each turn are in the live journal."""

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    def check(self) -> None:
        self._inner.check()

    def transaction(self) -> LoggingTransaction:
        return LoggingTransaction(self, self._inner, self._log, suspends=self._suspends)

    async def fetch_all(self, query: str, params: Params, /) -> Sequence[Row]:
        return await self._inner.fetch_all(query, params)

    async def fetch_one(self, query: str, params: Params, /) -> Row | None:
        return await self._inner.fetch_one(query, params)

    async def scrub(self) -> None:
        await self._inner.scrub()

    async def rewrite(self) -> None:
        await self._inner.rewrite()

    async def shrink(self) -> bool:
        return await self._inner.shrink()

    async def fetch_in_background(self, query: str, params: Params, /) -> Sequence[Row]:
        return await self._inner.fetch_in_background(query, params)


class LoggingTransaction:
    def __init__(self, outer: LoggingStore, store: Store, log: Log, *, suspends: bool) -> None:
        self._outer = outer
        self._block = store.transaction()
        self._log = log
        self._suspends = suspends
        self._deeds: list[str] = []

    async def __aenter__(self) -> LoggingTransaction:
        self._tx: Transaction = await self._block.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._block.__aexit__(kind, error, trace)
        if kind is None:
            self._outer.commits += 1
            for deed in self._deeds:
                self._log.append(deed)
        for _ in range(5):  # the news of a commit may take longer than the next transaction
            await self._rest()

    async def fetch_all(self, query: str, params: Params, /) -> Sequence[Row]:
        await self._rest()
        return await self._tx.fetch_all(query, params)

    async def fetch_one(self, query: str, params: Params, /) -> Row | None:
        self._note(query, params)
        await self._rest()
        return await self._tx.fetch_one(query, params)

    async def execute(self, query: str, params: Params, /) -> int:
        self._note(query, params)
        await self._rest()
        return await self._tx.execute(query, params)

    async def execute_many(self, query: str, rows: Sequence[Params], /) -> None:
        for row in rows:
            self._note(query, row)
        await self._rest()
        await self._tx.execute_many(query, rows)

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        return self._tx.savepoint()

    async def _rest(self) -> None:
        if self._suspends:
            await asyncio.sleep(0)

    def _journalled(self, turn: str, chunks: list[dict[str, Any]]) -> None:
        counts = self._outer.journalled
        counts[turn] = counts.get(turn, 0) + len(chunks)
        self._deeds.extend(f"committed {chunk['type']}" for chunk in chunks)

    def _note(self, query: str, params: Params) -> None:
        match query:
            case "append_journal" if params["kind"] == "chunks":
                self._journalled(params["turn"], json.loads(params["body"]))
            case "pack_journal":  # holds the whole stream: what is new in it is durable with it
                known = self._outer.journalled.get(params["turn"], 0)
                fresh = [json.loads(body) for body in unpack_stream(params["stream"])[known:]]
                self._journalled(params["turn"], fresh)
            case "insert_turn":
                self._deeds.append("accepted")
            case "insert_message":
                self._deeds.append(f"stored {params['role']}")
            case "settle_turn":
                self._deeds.append(f"settled {params['status']}")
            case "claim_call":
                self._deeds.append(f"claimed {params['tool_name']}")
            case _:
                pass


def loosely(value: Any) -> Any:
    """The same object without its types, for hooks whose event is a variable."""
    return value
