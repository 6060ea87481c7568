"""The commands as a user runs them, each in a process of its own."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from thinkwell.cli.main import main

DEMO = str(Path(__file__).parents[2] / "examples" / "demo.py")
COMMAND = (sys.executable, "-c", "from thinkwell.cli.main import main; main()")


@asynccontextmanager
async def thinkwell(*arguments: str, store: Path) -> AsyncIterator[Process]:
    """A running command; ended with the block if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        "--store",
        f"sqlite:///{store}",
        stdin=PIPE,
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def read_until(process: Process, pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    text = ""
    while not (found := re.search(pattern, text)):
        more = await process.stdout.read(4096)
        assert more, f"the command ended and never said {pattern!r}:\n{text}"
        text += more.decode()
    return found


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "::", "example.com"])
def test_serve_refuses_an_address_others_can_reach(host: str):
    result = CliRunner().invoke(main, ["serve", DEMO, "--host", host])
    assert result.exit_code == 2
    assert "--no-auth" in result.output


def test_help_names_the_commands():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "serve" in result.output
    assert "chat" in result.output


async def test_serve_says_where_the_page_is_and_stops_on_ctrl_c(tmp_path: Path):
    async with thinkwell("serve", DEMO, "--port", "0", store=tmp_path / "x.db") as process:
        url = (await read_until(process, r"Open (http://127\.0\.0\.1:\d+)/"))[1]
        async with aiohttp.ClientSession() as session, session.get(f"{url}/healthz") as answer:
            assert (await answer.json())["agents"] == ["assistant"]
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


async def test_a_second_server_on_one_store_is_told_so(tmp_path: Path):
    store = tmp_path / "x.db"
    async with thinkwell("serve", DEMO, "--port", "0", store=store) as first:
        await read_until(first, "Press Ctrl-C")
        async with thinkwell("serve", DEMO, "--port", "0", store=store) as second:
            output, _ = await second.communicate()
    assert second.returncode == 1
    assert b"Error:" in output
    assert b"Traceback" not in output


async def test_chat_in_process_streams_an_answer_and_shows_tools(tmp_path: Path):
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as process:
        output, _ = await process.communicate(b"What is the weather in Paris?\n/exit\n")
    assert process.returncode == 0
    assert '▸ get_weather {"city":"Paris"}' in output.decode()
    assert "◂ get_weather" in output.decode()


async def test_chat_goes_on_where_it_stopped(tmp_path: Path):
    for expected in (b"you", b"messages so far"):
        async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as process:
            output, _ = await process.communicate(b"hello\n/exit\n")
            assert expected in output


async def test_chat_speaks_to_a_running_server(tmp_path: Path):
    async with thinkwell("serve", DEMO, "--port", "0", store=tmp_path / "x.db") as server:
        url = (await read_until(server, r"Open (http://\S+)/"))[1]
        async with thinkwell("chat", url, store=tmp_path / "unused.db") as process:
            output, _ = await process.communicate(b"hello there\n")
    assert b'You said: "hello there"' in output


@pytest.mark.parametrize("path", ["", "/agents/nobody/x"])
async def test_chat_with_nobody_says_so_in_one_line(tmp_path: Path, path: str):
    async with thinkwell("serve", DEMO, "--port", "0", store=tmp_path / "x.db") as server:
        url = (await read_until(server, r"Open (http://\S+)/"))[1]
        if not path:
            server.send_signal(signal.SIGINT)
            await server.wait()
        async with thinkwell("chat", url + path, store=tmp_path / "unused.db") as process:
            output, _ = await process.communicate(b"")
    assert process.returncode == 1
    assert output.decode().startswith("Error: There is no agent at")


async def test_ctrl_c_stops_the_answer_and_not_the_chat(tmp_path: Path):
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as process:
        assert process.stdin is not None
        process.stdin.write(b"count to 900\n")
        await read_until(process, "1, 2, 3")
        process.send_signal(signal.SIGINT)
        await read_until(process, "stopped")
        output, _ = await process.communicate(b"hello\n/exit\n")
    assert b'You said: "hello"' in output
    assert process.returncode == 0
