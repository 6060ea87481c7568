"""The commands for operators on a database that a real process serves (a second one may not write):
they read beside it and act through it.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import COMMAND, environment
from tests.crash.client import client_of
from tests.crash.evidence import query, settled, stored_messages, turn_of
from tests.crash.process import Server, World, until
from thinkwell import Think
from thinkwell.host.control import Control, socket_of
from thinkwell.host.host import Host
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.sqlite import SqliteStore

pytestmark = pytest.mark.timeout(120)


class Done:
    """A command that has ended."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr


def command(world: World, *arguments: str, columns: str = "80") -> Done:
    """Run `thinkwell ... --store` and wait for its end."""
    process = subprocess.run(
        [*COMMAND, *arguments, "--store", str(world.store)],
        env=environment(COLUMNS=columns),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Done(process)


def answer(world: World, *arguments: str) -> Any:
    done = command(world, *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.end()


async def ask(server: Server, agent: str, question: str, request: str) -> None:
    async with client_of(server, agent) as client:
        await client.ask(question, request=request)
        await client.done(request)


@asynccontextmanager
async def parked(world: World) -> AsyncIterator[Server]:
    """A served database with a turn that was parked, and whose cause is mended."""
    world.hold("always-die-in-model-bad")
    server = await world.start()
    async with client_of(server, "talker/one") as client:
        await client.ask("bad|say:2", request="poison")
        await server.crashed()
    for _ in range(2):
        await world.run_into("")
    server = await world.start()
    await settled(world, "poison")
    world.release("always-die-in-model-bad")
    yield server


class TestTurns:
    async def test_a_parked_turn_is_listed_with_its_reason_retried_and_gone_from_the_list(
        self, world: World
    ):
        async with parked(world):
            shown = command(world, "turns", "list", "--parked")
            assert "poison" in shown.out
            assert "3 times in a row in the model call" in " ".join(shown.out.split())
            assert [t["stopReason"] for t in answer(world, "turns", "list", "--parked")] == [
                "parked"
            ]
            done = command(world, "turns", "retry", "poison")
            assert "poison:retry" in done.out
            row = await settled(world, "poison:retry")
            assert row["status"] == "completed"
            assert answer(world, "turns", "list", "--parked") == []
            assert (turn_of(world, "poison") or {})["stop_reason"] == "parked"
            roles = [message["role"] for message in stored_messages(world, "talker/one")]
            assert roles == ["user", "assistant"]

    async def test_a_second_retry_is_the_same_turn(self, world: World):
        async with parked(world):
            for _ in range(2):
                assert "poison:retry" in command(world, "turns", "retry", "poison").out
            await settled(world, "poison:retry")
            assert len(answer(world, "turns", "list")) == 2

    async def test_one_is_shown_with_its_question_attempts_and_calls(self, world: World):
        server = await world.start()
        await ask(server, "talker/one", "q|say:2,pure;say:1", "t1")
        shown = command(world, "turns", "show", "t1")
        assert {"talker/one", "completed", "q|say:2,pure;say:1"} <= set(shown.out.split())
        told = answer(world, "turns", "show", "t1")
        assert [call["toolName"] for call in told["calls"]] == ["pure"]
        assert (told["status"], told["attempt"]) == ("completed", 1)

    async def test_one_is_shown_with_what_happened_in_it_and_what_its_model_was_given(
        self, world: World
    ):
        server = await world.start()
        await ask(server, "talker/one", "q|say:2,pure;say:1", "t1")
        events = answer(world, "turns", "show", "t1")["events"]
        assert (events[0]["kind"], events[0]["attempt"]) == ("attempt", 1)
        steps = [(e["stepNumber"], e["finishReason"]) for e in events if e["kind"] == "model"]
        assert steps == [(0, "tool-calls"), (1, "stop")]
        assert [e["toolName"] for e in events if e["kind"] == "claim"] == ["pure"]
        assert all(e["count"] > 0 for e in events if e["kind"] == "chunks")
        lines = command(world, "turns", "show", "t1").out
        assert "pure · executed" in lines
        assert "step 1" in lines
        assert "step 0" not in command(world, "turns", "show", "t1", "--step", "1").out
        assert "same    1 message" in command(world, "turns", "show", "t1", "--diff").out
        assert "no step 9" in command(world, "turns", "show", "t1", "--step", "9").err
        case = command(world, "turns", "export", "t1", "--leave-out", "headers").out
        (world.store.parent / "case.json").write_text(case)
        file = str(world.store.parent / "case.json")
        again = command(world, "turns", "replay", "t1", file)
        assert (again.code, again.out.count("identical")) == (0, 2)
        tried = answer(world, "turns", "replay", "--since", "7d", "--model", "demo")
        assert tried["sum"]["turns"] == 1
        assert tried["turns"][0]["now"]["status"] == "completed"
        forked = command(world, "turns", "fork", "t1", "--at", "1", "--name", "other")
        assert "talker/other goes on from step 1" in forked.out
        requests = answer(world, "turns", "show", "t1", "--requests")
        assert [each["step"] for each in requests] == [0, 1]
        assert requests[1]["request"]["messages"][-1]["type"] == "tool"

    async def test_one_that_runs_is_cancelled(self, world: World):
        world.hold("a")
        server = await world.start()
        async with client_of(server, "talker/one") as client:
            await client.ask("long|say:2,hold:a,say:2", request="t1")
            await until(lambda: world.model_calls("long"), "the model is asked")
            assert command(world, "turns", "cancel", "t1").code == 0
            assert (await settled(world, "t1"))["status"] == "aborted"
            late = command(world, "turns", "cancel", "t1")
            assert (late.code, "does not run" in late.err) == (1, True)

    async def test_what_needs_no_retry_and_what_is_unknown_is_refused(self, world: World):
        server = await world.start()
        await ask(server, "talker/one", "q|say:2", "t1")
        assert "needs no retry" in command(world, "turns", "retry", "t1").err
        assert "no turn t9" in command(world, "turns", "show", "t9").err

    async def test_an_id_of_several_agents_asks_which(self, world: World):
        server = await world.start()
        for agent in ("talker/one", "talker/two"):
            await ask(server, agent, "q|say:2", "t1")
        assert "talker/one, talker/two" in command(world, "turns", "show", "t1").err
        told = answer(world, "turns", "show", "t1", "--agent", "talker/two")
        assert told["agent"] == "talker/two"

    async def test_the_list_is_filtered_by_agent_and_status(self, world: World):
        server = await world.start()
        for agent in ("talker/one", "talker/two"):
            await ask(server, agent, "q|say:2", f"t-{agent[-3:]}")
        found = answer(world, "turns", "list", "--agent", "talker/two")
        assert [turn["id"] for turn in found] == ["t-two"]
        assert answer(world, "turns", "list", "--status", "error") == []
        with closing(sqlite3.connect(world.store)) as file:
            file.execute("UPDATE turns SET created_at = created_at - 3 * 86400 WHERE id = 't-one'")
            file.commit()
        recent = answer(world, "turns", "list", "--since", "2d")
        assert [turn["id"] for turn in recent] == ["t-two"]
        assert len(answer(world, "turns", "list", "--since", "1w")) == 2
        assert "Write 7d, 12h or 30min" in command(world, "turns", "list", "--since", "soon").err
        assert len(answer(world, "turns", "list", "--limit", "1")) == 1


async def test_agents_are_listed_with_their_turns(world: World):
    async with parked(world) as server:
        await ask(server, "talker/two", "q|say:2", "t2")
        found = {row["id"]: row for row in answer(world, "agents", "list")}
        assert (found["talker/one"]["parked"], found["talker/two"]["parked"]) == (1, 0)
        assert "talker/two" in command(world, "agents", "list").out
        assert answer(world, "agents", "show", "talker/two")["turns"] == {"completed": 1}
        assert "lastTurnAt" in found["talker/two"]
        nobody = command(world, "agents", "list", "--class", "nope").out
        assert "no agents of a class 'nope'" in nobody
        assert "talker" in nobody


async def test_stop_is_a_planned_stop_and_waits_for_it(world: World):
    server = await world.start()
    done = command(world, "stop")
    assert (done.code, str(server.process.pid) in done.out) == (0, True)
    assert await server.ended() == 0
    assert not socket_of(world.store).exists()


async def test_without_a_server_acting_says_how_to_get_one_and_reading_works(world: World):
    server = await world.start()
    await ask(server, "talker/one", "q|say:2", "t1")
    await server.kill()
    for arguments in (("stop",), ("turns", "cancel", "t1"), ("turns", "retry", "t1")):
        done = command(world, *arguments)
        assert (done.code, "thinkwell serve" in done.err) == (1, True)
    assert len(answer(world, "turns", "list")) == 1
    assert answer(world, "doctor")["process"] is None


async def test_backup_is_a_whole_database_of_one_file_that_only_its_owner_reads(world: World):
    server = await world.start()
    await ask(server, "talker/one", "q|say:2", "t1")
    target = world.folder / "copy.db"
    assert command(world, "backup", str(target)).code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(world.folder.glob("copy.db*")) == [target]
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT id FROM turns").fetchall() == [("t1",)]
    again = command(world, "backup", str(target))
    assert (again.code, "--force" in again.err) == (1, True)
    assert command(world, "backup", str(target), "--force").code == 0
    assert server.alive


@pytest.mark.parametrize("end", ["", "-wal", "-shm", ".lock", ".sock"])
async def test_backup_never_replaces_a_file_of_the_database_itself(world: World, end: str):
    server = await world.start()
    await ask(server, "talker/one", "q|say:2", "t1")
    own = world.store.with_name(world.store.name + end)
    other_name = world.folder / "link.db"
    other_name.symlink_to(own)
    for target in (own, other_name):
        done = command(world, "backup", str(target), "--force")
        assert (done.code, "belongs to the database" in done.err) == (1, True)
    assert len(answer(world, "turns", "list")) == 1


async def test_doctor_tells_who_serves_and_what_is_unfinished(world: World):
    async with parked(world) as server:
        report = answer(world, "doctor")
        assert (report["process"], report["reachable"]) == (server.process.pid, True)
        assert (report["parked"], report["damages"]) == (1, [])
        assert "sound" in command(world, "doctor").out


async def test_doctor_finds_a_damaged_file(world: World):
    server = await world.start()
    for number in range(3):
        await ask(server, f"talker/{number}", "q|say:200", f"t{number}")
    await server.stop()
    with world.store.open("r+b") as file:
        file.seek(world.store.stat().st_size // 2)  # behind the schema
        file.write(b"\xff" * 65536)
    done = command(world, "doctor")
    assert (done.code, "damaged" in done.out) == (1, True)


def test_no_database_says_how_to_name_one(tmp_path: Path):
    done = command(World(tmp_path), "doctor")
    assert (done.code, "--store" in done.err) == (1, True)


class TestTheSocket:
    async def test_is_the_owners_alone_and_replaces_one_that_a_dead_process_left(
        self, world: World
    ):
        first = await world.start()
        path = socket_of(world.store)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await first.kill()
        assert path.exists()
        await world.start()
        assert answer(world, "doctor")["reachable"] is True

    async def test_a_long_path_is_reached_through_its_folder(self, tmp_path: Path):
        folder = tmp_path / ("long-" * 20) / ("name-" * 20)
        folder.mkdir(parents=True)
        world = World(folder)
        server = await world.start()
        assert answer(world, "doctor")["reachable"] is True
        await server.stop()

    async def test_what_is_no_request_is_refused_and_harms_nobody(self, tmp_path: Path):
        host = Host([], SqliteStore(tmp_path / "x.db"))
        await host.start()
        control = Control(host, tmp_path / "x.db", stop=lambda: None)
        await control.start()
        wrong = (b"", b"[1]", b"\xff\xfe", b'{"do": "explode"}', b'{"do": "retry"}')
        for text in (*wrong, b"[" * 60_000, b'{"do": "' + b"x" * 70_000 + b'"}'):
            line = text + b"\n"
            reader, writer = await asyncio.open_unix_connection(socket_of(tmp_path / "x.db"))
            writer.write(line)
            assert json.loads(await reader.readline())["ok"] is False
            writer.close()
            await writer.wait_closed()
        await control.close()
        await host.stop()

    async def test_asking_for_a_turn_of_an_unknown_agent_makes_none(self, tmp_path: Path):
        host = Host([Think], SqliteStore(tmp_path / "x.db"))
        await host.start()
        control = Control(host, tmp_path / "x.db", stop=lambda: None)
        await control.start()
        for do in ("cancel", "retry"):
            reader, writer = await asyncio.open_unix_connection(socket_of(tmp_path / "x.db"))
            request = {"do": do, "agent": f"{Think.agent_class}/typo", "turn": "t1"}
            writer.write(json.dumps(request).encode() + b"\n")
            await reader.readline()
            writer.close()
            await writer.wait_closed()
        await control.close()
        await host.stop()
        with ReadOnlySqlite(tmp_path / "x.db") as left:
            assert left.fetch_all("all_agents", {}) == []

    async def test_a_stop_is_planned_even_if_the_program_just_ends(self, tmp_path: Path):
        host = Host([], SqliteStore(tmp_path / "x.db"))
        await host.start()
        asked = asyncio.Event()
        control = Control(host, tmp_path / "x.db", stop=asked.set)
        await control.start()
        reader, writer = await asyncio.open_unix_connection(socket_of(tmp_path / "x.db"))
        writer.write(b'{"do": "stop"}\n')
        assert json.loads(await reader.readline())["ok"] is True
        await asked.wait()
        with ReadOnlySqlite(tmp_path / "x.db") as left:
            assert left.fetch_all("boot_by_id", {"id": 1})[0]["stopped_at"] is not None
        await control.close()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        await host.stop()

    async def test_a_file_of_that_name_is_left_alone_and_the_app_starts(self, tmp_path: Path):
        host = Host([], SqliteStore(tmp_path / "x.db"))
        await host.start()
        socket_of(tmp_path / "x.db").write_text("mine")
        control = Control(host, tmp_path / "x.db")
        await control.start()
        await control.close()
        assert socket_of(tmp_path / "x.db").read_text() == "mine"
        await host.stop()


class TestReading:
    async def test_needs_no_right_to_write(self, tmp_path: Path):
        store = SqliteStore(tmp_path / "x.db")
        await store.open()
        await store.close()
        for left in tmp_path.glob("x.db-*"):
            left.unlink()
        (tmp_path / "x.db").chmod(0o400)
        with ReadOnlySqlite(tmp_path / "x.db") as database:
            assert database.fetch_all("all_agents", {}) == []

    async def test_changes_nothing_while_a_process_writes(self, world: World):
        server = await world.start()
        await ask(server, "talker/one", "q|say:2", "t1")
        for _ in range(3):
            with ReadOnlySqlite(world.store) as database:
                assert len(database.fetch_all("turns_with_id", {"id": "t1", "agent": None})) == 1
        await ask(server, "talker/one", "q|say:2", "t2")
        assert len(answer(world, "turns", "list")) == 2


async def test_an_agent_is_deleted_with_all_it_has_stored(world: World):
    server = await world.start()
    for agent in ("talker/one", "talker/two"):
        await ask(server, agent, "q|say:2", "t1")
    refused = command(world, "agents", "delete", "talker/one")  # nobody says yes
    assert refused.code == 1
    done = command(world, "agents", "delete", "talker/one", "--yes")
    assert (done.code, done.err) == (0, "")
    assert [row["id"] for row in answer(world, "agents", "list")] == ["talker/two"]
    assert query(world, "SELECT * FROM turns WHERE agent = 'talker/one'") == []
    again = command(world, "agents", "delete", "talker/one", "--yes")
    assert (again.code, "no agent talker/one" in again.err) == (1, True)
