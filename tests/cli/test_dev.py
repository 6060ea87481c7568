"""`thinkwell dev`: the port stays, the code is new, durable turns go on (DESIGN §4)."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import aiohttp
import pytest

from tests.cli.commands import thinkwell
from thinkwell.cli.dev import changes, folder_of, python_files

pytestmark = pytest.mark.timeout(120)

AGENT = """
from thinkwell import Think

class {name}(Think):
    model = "demo"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "code" / "agent.py"
    path.parent.mkdir()
    path.write_text(AGENT.format(name="First"))
    return path


async def agents_at(url: str) -> list[str]:
    settings = f"{url}/_thinkwell/settings"
    async with aiohttp.ClientSession() as session, session.get(settings) as answer:
        return (await answer.json())["agents"]


async def test_a_change_reloads_the_agents_and_keeps_the_port(tmp_path: Path, file: Path):
    arguments = ("dev", str(file), "--port", "0", "--no-open")
    async with thinkwell(*arguments, store=tmp_path / "x.db") as process:
        url = await process.address()
        assert await agents_at(url) == ["first"]
        file.write_text(AGENT.format(name="Second"))
        await process.says(r"agent\.py changed\. Reloading")
        assert await process.address() == url
        assert await agents_at(url) == ["second"]


async def test_a_mistake_is_shown_and_the_next_change_mends_it(tmp_path: Path, file: Path):
    arguments = ("dev", str(file), "--port", "0", "--no-open")
    async with thinkwell(*arguments, store=tmp_path / "x.db") as process:
        url = await process.address()
        file.write_text("x = (")
        await process.says(r"(?s)SyntaxError.*Waiting for a change")
        file.write_text(AGENT.format(name="Mended"))
        assert await process.address() == url
        assert await agents_at(url) == ["mended"]


async def test_a_killed_server_is_started_again_and_its_turn_goes_on(tmp_path: Path, file: Path):
    arguments = ("dev", str(file), "--port", "0", "--no-open")
    async with thinkwell(*arguments, store=tmp_path / "x.db") as process:
        url = await process.address()
        server = int((await process.says(r"process +(\d+)"))[1])
        async with thinkwell("chat", url) as chat:
            chat.write("count to 120\n")
            await chat.says("1, 2, 3, 4, 5,")
            os.kill(server, signal.SIGKILL)
            await chat.says(r"119, 120\. Done")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_both_processes(tmp_path: Path, file: Path, sent: signal.Signals):
    arguments = ("dev", str(file), "--port", "0", "--no-open")
    async with thinkwell(*arguments, store=tmp_path / "x.db") as process:
        await process.address()
        server = int((await process.says(r"process +(\d+)"))[1])
        process.process.send_signal(sent)
        await process.ends()
        assert process.status == 0
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


async def test_the_page_is_opened_once(tmp_path: Path, file: Path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "opened $1" | tee -a {opened}\n')
    browser.chmod(0o755)
    arguments = ("dev", str(file), "--port", "0")
    env = {"BROWSER": f"{browser} %s"}
    async with thinkwell(*arguments, store=tmp_path / "x.db", env=env) as process:
        url = await process.address()
        await process.says(f"opened {url}/")
        file.write_text(AGENT.format(name="Second"))
        await process.says("Press Ctrl-C")
    assert opened.read_text() == f"opened {url}/\n"


async def test_a_wrong_command_line_ends_it(tmp_path: Path, file: Path):
    arguments = ("dev", str(file), "--port", "0", "--host", "0.0.0.0", "--no-open")
    async with thinkwell(*arguments, store=tmp_path / "x.db") as process:
        output = await process.ends()
    assert process.status == 2
    assert "Refusing to listen" in output


async def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path, file: Path):
    dev = ("dev", str(file), "--no-open", "--port")
    async with thinkwell(*dev, "0", store=tmp_path / "x.db") as first:
        port = (await first.address()).rpartition(":")[2]
        for command in (dev, ("serve", str(file), "--port")):
            async with thinkwell(*command, port, store=tmp_path / "y.db") as second:
                output = await second.ends()
            assert second.status == 1
            assert output == (
                f"Error: Port {port} is in use: something else listens on 127.0.0.1:{port}. Stop "
                f"it, or take another port: --port {int(port) + 1}, or --port 0 for a free one.\n"
            )


async def test_a_host_that_nobody_knows_is_one_clear_line(tmp_path: Path, file: Path):
    command = ("serve", str(file), "--no-auth", "--port", "0", "--host", "nowhere.invalid")
    async with thinkwell(*command, store=tmp_path / "x.db") as process:
        output = await process.ends()
    assert process.status == 1
    # What the resolver says differs between machines, and with a network or without.
    line = r"Error: Cannot listen on nowhere\.invalid:0: [A-Z][\w ]+\. Try another --host or .*\n"
    assert re.fullmatch(line, output)
    assert "Unknown error" not in output


class TestFiles:
    def test_python_files_below_the_folder_count(self, tmp_path: Path):
        for name in ("a.py", "sub/b.py", "c.txt", ".venv/d.py", "node_modules/e.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("")
        assert sorted(python_files(tmp_path)) == [
            str(tmp_path / "a.py"),
            str(tmp_path / "sub" / "b.py"),
        ]

    def test_written_added_and_removed_files_are_changes(self):
        assert changes({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "d": 1}) == ["b", "c", "d"]

    def test_what_is_watched_follows_from_what_is_served(self, tmp_path: Path):
        (tmp_path / "a.py").write_text("")
        assert folder_of(str(tmp_path / "a.py")) == tmp_path
        assert folder_of(str(tmp_path)) == tmp_path
        assert folder_of("package.module:app") == Path()
