"""Mistakes of the user's program and command line, as they are read in a terminal."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from tests.cli.commands import thinkwell

BROKEN = """
from thinkwell import Think

class Broken(Think):
    model = "demo"

    async def on_start(self):
        self.prepare()

    def prepare(self):
        1 / 0
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    return path


@pytest.mark.parametrize("command", ["serve", "dev"])
@pytest.mark.parametrize("port", ["65536", "-1"])
async def test_a_port_that_cannot_be_is_one_clear_line(broken: Path, command: str, port: str):
    async with thinkwell(command, str(broken), "--port", port) as process:
        assert await process.ends() == (
            f"Error: There is no port {port}: ports go from 1 to 65535, and --port 0 takes a free "
            "one.\n"
        )
    assert process.status == 1


async def test_chat_shows_a_start_that_fails_from_the_users_first_line_on(
    broken: Path, tmp_path: Path
):
    async with thinkwell("chat", str(broken), store=tmp_path / "x.db") as process:
        said = (await process.ends("hi\n")).splitlines()
    assert process.status == 1
    assert said[0] == f"Error: {broken} failed in on_start."
    assert said[2] == f'  File "{broken}", line 8, in on_start'
    assert said[-1] == "ZeroDivisionError: division by zero"
    assert [line for line in said if "File " in line and str(broken) not in line] == []


async def test_serve_logs_a_start_that_fails_once(broken: Path, tmp_path: Path):
    serve = ("serve", str(broken), "--port", "0")
    async with thinkwell(*serve, store=tmp_path / "x.db") as process:
        url = f"{await process.address()}/agents/broken/x/run"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json={"input": "hi"}) as answer,
        ):
            assert answer.status == 500
        process.process.terminate()
        said = await process.ends()
    assert said.count("ZeroDivisionError: division by zero") == 1
    assert "a request failed in on_start: /agents/broken/x/run" in said
