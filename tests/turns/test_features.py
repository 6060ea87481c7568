"""Features in their seat: what they bring, whom a clash names, whom a failure names (DESIGN §3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from tests.turns.support import Client, Stage, running
from thinkwell import Agent, App, HttpResponse, RpcStream, Think, create_agent, rpc, tool
from thinkwell.core.errors import AgentDefinitionError, ConfigurationError, FeatureError
from thinkwell.core.principal import Principal
from thinkwell.features import Feature, Kit, Refusal, Route, RouteRequest
from thinkwell.host.client import AgentAddress
from thinkwell.jobs import JobContext
from thinkwell.testing import ScriptedModel
from thinkwell.testing import call as scripted_call
from thinkwell.wire.http import HttpRequest


class Notes(Feature):
    """A bit of everything."""

    name = "notes"

    async def on_boot(self, kit: Kit) -> None:
        self.seen: list[str] = ["booted"]
        self.kept: list[str] = await kit.storage.get("kept", [])

    @tool
    async def take_note(self, text: str) -> str:
        """Remember something."""
        self.kept.append(text)
        await self.kit.storage.set("kept", self.kept)
        return "noted"

    def tools(self, turn: Any) -> dict[str, Any]:
        return {"take_note": self.take_note}

    def prompt(self, turn: Any) -> str:
        return f"You keep {len(self.kept)} notes."

    def hooks(self) -> dict[str, Any]:
        return {"on_turn_start": lambda ctx: self.seen.append(f"turn {ctx.message}")}

    def calls(self) -> dict[str, Any]:
        return {"readNotes": self.read, "addNotes": self.add, "followNotes": self.follow}

    @rpc(read_only=True)
    async def read(self) -> list[str]:
        return self.kept

    async def add(self, count: int) -> int:
        return count + len(self.kept)

    async def follow(self) -> AsyncIterator[str]:
        for note in self.kept:
            yield note

    def routes(self) -> list[Route]:
        return [
            Route("GET", "notes/{number}", self.serve),
            Route("POST", "notes", self.receive),
        ]

    async def serve(self, request: RouteRequest) -> HttpResponse:
        number = int(request.params["number"])
        if number >= len(self.kept):
            raise Refusal(404, f"There is no note {number}.")
        return HttpResponse(body=self.kept[number].encode())

    async def receive(self, request: RouteRequest) -> HttpResponse:
        made = await self.kit.admit(request.request.body.decode(), by=request)
        return HttpResponse(status=202, body=made.request_id.encode())

    def greet(self, connection: Any) -> list[str]:
        return [f'{{"type":"notes","count":{len(self.kept)}}}']

    async def on_clear(self) -> None:
        self.kept = []
        await self.kit.storage.delete("kept")

    async def on_close(self) -> None:
        self.seen.append("closed")


class Keeper(Think):
    features = [Notes()]
    notes: Notes

    async def on_start(self) -> None:
        self.notes.seen.append("on_start")


CALL = [scripted_call("take_note", {"text": "milk"})]


async def request(
    stage: Stage[Any], method: str, path: str, body: bytes = b"", **who: Any
) -> HttpResponse:
    address = AgentAddress(stage.agent.agent_class, stage.agent.name)
    asked = HttpRequest(method=method, path=path, body=body, **who)
    return await stage.host.client().handle_request(address, asked)


async def call(client: Client, method: str, *args: Any) -> dict[str, Any]:
    call_id = f"call-{len(client.frames)}"
    await client.send(type="rpc", id=call_id, method=method, args=list(args))
    return await client.until(lambda f: f.get("id") == call_id and f.get("done", True))


class TestWhatTheyBring:
    async def test_a_tool_and_a_line_of_the_prompt(self):
        async with running(Keeper, CALL, "done") as stage:
            result = await stage.agent.run("hello")
            assert result.status == "completed"
            assert stage.agent.notes.kept == ["milk"]
            first = stage.model.requests[0]
            assert "take_note" in [offered.name for offered in first.tools]
            assert "You keep 0 notes." in (first.system or "")

    async def test_on_boot_comes_before_on_start_and_hooks_are_called(self):
        async with running(Keeper, "hi") as stage:
            await stage.agent.run("hello")
            assert stage.agent.notes.seen == ["booted", "on_start", "turn hello"]

    async def test_calls_are_checked_and_stream_like_those_of_the_class(self):
        async with running(Keeper) as stage:
            stage.agent.notes.kept = ["a", "b"]
            client = await stage.connect()
            assert (await call(client, "readNotes"))["result"] == ["a", "b"]
            assert (await call(client, "addNotes", 3))["result"] == 5
            assert "argument 'count'" in (await call(client, "addNotes", "x"))["error"]
            await call(client, "followNotes")
            sent = [f.get("result") for f in client.frames if f.get("done") is False]
            assert sent == ["a", "b"]

    async def test_a_route_answers_refuses_and_says_which_methods_it_takes(self):
        async with running(Keeper) as stage:
            stage.agent.notes.kept = ["a"]
            assert (await request(stage, "GET", "notes/0")).body == b"a"
            missing = await request(stage, "GET", "notes/7")
            assert (missing.status, missing.body) == (404, b'{"error":"There is no note 7."}')
            wrong = await request(stage, "DELETE", "notes")
            assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
            assert (await request(stage, "GET", "other")).status == 404

    async def test_a_turn_that_a_route_admits_belongs_to_whoever_asked(self):
        async with running(Keeper, "hi") as stage:
            ann = Principal(id="ann")
            answer = await request(stage, "POST", "notes", b"hello", principal=ann)
            events = [e async for e in stage.agent.notes.kit.tail(answer.body.decode())]
            assert [type(e).__name__ for e in (events[0], events[-1])] == ["Started", "Ended"]
            record = await stage.agent.notes.kit.find(answer.body.decode())
            assert record is not None
            assert (record.status, record.principal) == ("completed", ann)

    async def test_frames_greet_a_client_after_identity(self):
        async with running(Keeper) as stage:
            client = await stage.connect()
            kinds = [frame["type"] for frame in client.frames]
            assert kinds.index("notes") > kinds.index("cf_agent_identity")

    async def test_a_clear_takes_along_what_on_clear_deletes(self):
        async with running(Keeper, CALL, "done") as stage:
            await stage.agent.run("hello")
            await stage.agent.storage.set("own", 1)
            await stage.agent.clear_messages()
            assert await stage.agent.notes.kit.storage.list() == {}
            assert await stage.agent.storage.list() == {"own": 1}

    async def test_an_agent_without_chat_has_features_too(self):
        class Shelf(Agent):
            features = [Notes()]

        app = App(agents=[Shelf], store="sqlite://:memory:")
        async with app:
            address = AgentAddress("shelf", "x")
            asked = HttpRequest(method="GET", path="notes/0")
            answer = await app.client.handle_request(address, asked)
            assert answer.status == 404

    async def test_an_app_gives_its_features_to_all_agents_and_each_gets_a_copy(self):
        class One(Think):
            notes: Notes

            async def read(self) -> list[int]:
                return [id(self.notes), self.notes.kit.agent is self]

        template = Notes()
        async with App(agents=[One], store="sqlite://:memory:", features=[template]) as app:
            a, b = await app.agent(One, "a").read(), await app.agent(One, "b").read()
            assert a[1]
            assert b[1]
            assert len({a[0], b[0], id(template)}) == 3

    async def test_an_agent_without_a_class_has_features_too(self):
        model = ScriptedModel([CALL, "done"])
        async with create_agent(model=model, features=[Notes()]) as agent:
            await agent.run("hello")
            assert agent.notes.kept == ["milk"]

    async def test_methods_of_a_feature_can_be_called_through_a_stub(self):
        async with App(agents=[Keeper], store="sqlite://:memory:") as app:
            assert await app.agent(Keeper).notes.add(3) == 3

    async def test_a_feature_reaches_other_agents_by_class_and_by_name(self):
        class Peer(Think):
            features = [Notes()]
            notes: Notes

            async def ask(self, other: str) -> str:
                kit = self.notes.kit
                return f"{await kit.agents(Peer, other).hello()} {await kit.agents('peer').hello()}"

            async def hello(self) -> str:
                return self.name

        async with App(agents=[Peer], store="sqlite://:memory:") as app:
            assert await app.agent(Peer, "a").ask("b") == "b default"

    async def test_the_agent_sleeps_and_its_features_are_closed(self):
        async with running(Keeper) as stage:
            notes = stage.agent.notes
        assert notes.seen[-1] == "closed"


class Clerk(Feature):
    """Stores a value and enqueues the job that goes with it."""

    name = "clerk"

    async def on_boot(self, kit: Kit) -> None:
        self.done = asyncio.Event()

    def jobs(self) -> dict[str, Any]:
        return {"file": self.file}

    async def file(self, payload: str, ctx: JobContext) -> None:
        await self.kit.storage.set("filed", payload)
        self.done.set()

    async def take(self, paper: str, *, fail: bool = False) -> str:
        async with self.kit.storage.together():
            await self.kit.storage.set("taken", paper)
            job = await self.kit.enqueue("file", paper, key=paper)
            if fail:
                raise RuntimeError("the lights go out")
        return job.id


class TestJobs:
    class Office(Think):
        features = [Clerk()]
        clerk: Clerk

    async def test_a_job_is_stored_with_the_values_of_its_block_or_not_at_all(self):
        async with running(self.Office) as stage:
            clerk = stage.agent.clerk
            with pytest.raises(RuntimeError):
                await clerk.take("a", fail=True)
            assert await clerk.kit.storage.list() == {}
            assert await stage.agent.jobs.list() == []
            await clerk.take("a")
            await clerk.done.wait()
            assert await clerk.kit.storage.list() == {"filed": "a", "taken": "a"}

    async def test_the_same_key_gives_the_first_job_in_a_block_too(self):
        async with running(self.Office) as stage:
            clerk = stage.agent.clerk
            assert await clerk.take("a") == await clerk.take("a")
            assert [job.name for job in await stage.agent.jobs.list()] == ["clerk.file"]

    async def test_what_on_clear_enqueues_is_done_after_the_clear(self):
        class Tidy(Clerk):
            async def on_clear(self) -> None:
                await self.kit.enqueue("file", "cleared")

        class Cleared(Think):
            features = [Tidy()]
            clerk: Tidy

        async with running(Cleared, "hi") as stage:
            await stage.agent.run("hello")
            await stage.agent.clear_messages()
            await stage.agent.clerk.done.wait()
            assert await stage.agent.clerk.kit.storage.get("filed") == "cleared"


class TestWhoMayOnlyLook:
    class Guarded(Keeper):
        def should_request_be_readonly(self, request: HttpRequest) -> bool:
            return True

        def should_connection_be_readonly(self, connection: Any, request: HttpRequest) -> bool:
            return True

    async def test_a_route_that_changes_something_is_refused(self):
        async with running(self.Guarded) as stage:
            answer = await request(stage, "POST", "notes", b"hello")
            assert (answer.status, answer.body) == (403, b'{"error":"Connection is readonly"}')
            assert (await request(stage, "GET", "notes/0")).status == 404

    async def test_only_calls_that_look_are_answered(self):
        async with running(self.Guarded) as stage:
            client = await stage.connect()
            assert (await call(client, "readNotes"))["result"] == []
            assert (await call(client, "addNotes", 1))["error"] == "Connection is readonly"


class TestClashes:
    def test_a_name_that_agents_have_already_is_refused_when_the_class_is_made(self):
        with pytest.raises(AgentDefinitionError, match=r"named 'session' and would hide Think\."):

            class Bad(Think):
                features = [named("session")]

    def test_two_features_of_one_name_are_refused_and_both_are_named(self):
        with pytest.raises(AgentDefinitionError, match=r"'notes': Notes in .*and Other in"):

            class Bad(Think):
                features = [Notes(), named("notes")]

    async def test_a_clash_with_the_app_is_known_when_it_starts(self):
        app = App(agents=[Keeper], store="sqlite://:memory:", features=[named("notes")])
        with pytest.raises(ConfigurationError, match=r"Keeper\.features and Other in App"):
            await app.start()

    def test_a_class_instead_of_an_object_is_refused(self):
        with pytest.raises(AgentDefinitionError, match=r"Write `Notes\(\)`"):

            class Bad(Think):
                features: Any = [Notes]

    def test_a_subclass_adds_features_and_replaces_those_of_the_same_kind(self):
        from thinkwell.hooks.seats import features_of

        class Better(Notes):
            pass

        class Child(Keeper):
            features = [Better(), named("more")]

        kinds = [type(f).__name__ for f in features_of(Child)]
        assert kinds[-2:] == ["Better", "Other"]
        assert "Notes" not in kinds

    async def test_a_tool_that_the_class_has_fails_the_turn_and_names_both(self):
        class Twice(Keeper):
            expose_errors = True

            @tool(name="take_note")
            def own(self) -> str:
                """The same name."""
                return ""

        async with running(Twice, "hi") as stage:
            result = await stage.agent.run("hello")
            assert result.status == "error"
            assert "feature 'notes' brings a tool named 'take_note'" in (result.error or "")
            assert "decorated with @tool" in (result.error or "")

    async def test_a_call_that_the_class_has_keeps_the_agent_from_waking(self):
        class Twice(Keeper):
            @rpc(name="readNotes")
            def own(self) -> None: ...

        with pytest.raises(AgentDefinitionError, match=r"both Twice and the feature 'notes'"):
            async with running(Twice):
                pass


def named(name: str) -> Feature:
    class Other(Feature):
        pass

    Other.name = name
    return Other()


class Broken(Feature):
    """Raises where it is told to."""

    name = "broken"

    def __init__(self, where: str) -> None:
        self.where = where

    def _raise(self, where: str) -> None:
        if where == self.where:
            raise RuntimeError("boom")

    async def on_boot(self, kit: Kit) -> None:
        self._raise("on_boot")

    def prompt(self, turn: Any) -> str | None:
        self._raise("prompt")
        return None

    def greet(self, connection: Any) -> list[str]:
        self._raise("greet")
        return []

    async def on_clear(self) -> None:
        await self.kit.storage.set("cleared", True)
        self._raise("on_clear")

    async def on_close(self) -> None:
        self._raise("on_close")


def broken(where: str) -> type[Think]:
    class Agent(Think):
        features = [Broken(where)]
        expose_errors = True

    return Agent


class TestFailures:
    async def test_a_feature_that_cannot_boot_is_named(self):
        with pytest.raises(FeatureError, match="'broken' failed in on_boot: RuntimeError: boom"):
            async with running(broken("on_boot")):
                pass

    async def test_one_that_cannot_say_its_prompt_fails_the_turn_by_name(self):
        async with running(broken("prompt"), "hi", "hi") as stage:
            result = await stage.agent.run("hello")
            assert "The feature 'broken' failed in prompt" in (result.error or "")

    @pytest.mark.parametrize("where", ["greet", "on_clear", "on_close"])
    async def test_one_that_fails_beside_the_turn_is_logged_and_the_agent_goes_on(
        self, where: str, caplog: pytest.LogCaptureFixture
    ):
        with caplog.at_level(logging.ERROR):
            async with running(broken(where), "hi") as stage:
                await stage.connect()
                await stage.agent.clear_messages()
                assert (await stage.agent.run("hello")).status == "completed"
        (record,) = caplog.records
        agent = f"{stage.agent.agent_class}/x"
        assert record.getMessage() == f"{where} of the feature 'broken' failed (agent {agent})"
        assert (vars(record)["agent"], vars(record)["hook"]) == (agent, f"broken.{where}")

    async def test_what_a_feature_writes_before_it_fails_to_clear_is_not_stored(self):
        async with running(broken("on_clear")) as stage:
            await stage.agent.clear_messages()
            kit = stage.agent.broken.kit  # pyright: ignore[reportAttributeAccessIssue]
            assert await kit.storage.list() == {}

    async def test_one_that_ignores_its_cancel_keeps_nobody_waiting(self):
        class Stubborn(Feature):
            name = "stubborn"

            async def on_close(self) -> None:
                while not released.is_set():
                    with suppress(asyncio.CancelledError):
                        await released.wait()

        class Held(Think):
            features = [Stubborn()]

        released = asyncio.Event()
        async with running(Held):
            pass
        released.set()


async def test_a_call_with_a_stream_gets_it_first():
    class Streams(Feature):
        name = "streams"

        def calls(self) -> dict[str, Any]:
            return {"count": self.count}

        @rpc(streaming=True)
        async def count(self, stream: RpcStream, upto: int) -> None:
            for number in range(upto):
                stream.send(number)

    class Counter(Think):
        features = [Streams()]

    async with running(Counter) as stage:
        client = await stage.connect()
        await call(client, "count", 2)
        assert [f["result"] for f in client.frames if f.get("done") is False] == [0, 1]
