"""The commands as a user runs them, each in a process of its own (DESIGN §4)."""

from __future__ import annotations

import signal
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from tests.cli.commands import DEMO, thinkwell
from thinkwell.cli.main import main

pytestmark = pytest.mark.timeout(120)

GUARDED = """
from thinkwell import App, Think

class Assistant(Think): model = "demo"

def auth(request, route):
    return "ada" if request.headers.get("authorization") == "Bearer open" else None

app = App(agents=[Assistant], auth=auth)
"""


@pytest.fixture
def guarded(tmp_path: Path) -> str:
    path = tmp_path / "guarded.py"
    path.write_text(GUARDED)
    return str(path)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "::", "example.com"])
def test_serve_refuses_an_address_others_can_reach_and_names_both_ways_out(host: str):
    result = CliRunner().invoke(main, ["serve", DEMO, "--host", host])
    assert result.exit_code == 2
    assert "--no-auth" in result.output
    assert "auth=..." in result.output


def test_help_names_the_commands():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert {"serve", "dev", "chat"} <= set(result.output.split())


async def test_an_app_with_auth_may_be_reached_by_others(tmp_path: Path, guarded: str):
    where = ("--host", "0.0.0.0", "--port", "0")
    async with thinkwell("serve", guarded, *where, store=tmp_path / "x.db") as process:
        await process.address()


async def test_no_auth_lets_an_app_without_auth_be_reached(tmp_path: Path):
    where = ("--host", "0.0.0.0", "--port", "0", "--no-auth")
    async with (
        thinkwell("serve", DEMO, *where, store=tmp_path / "x.db") as process,
        aiohttp.ClientSession() as session,
    ):
        public = {"host": "agents.example.com"}  # as through a proxy, or by its name in a network
        async with session.get(f"{await process.address()}/", headers=public) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
async def test_serve_says_where_the_page_is_and_stops_on_a_signal(
    tmp_path: Path, sent: signal.Signals
):
    async with thinkwell("serve", DEMO, "--port", "0", store=tmp_path / "x.db") as process:
        url = await process.address()
        async with aiohttp.ClientSession() as session, session.get(f"{url}/healthz") as answer:
            assert answer.status == 200
        process.process.send_signal(sent)
        assert "Traceback" not in await process.ends()
        assert process.status == 0


async def test_a_second_server_on_one_store_is_told_so(tmp_path: Path):
    store = tmp_path / "x.db"
    async with thinkwell("serve", DEMO, "--port", "0", store=store) as first:
        await first.says("Press Ctrl-C")
        async with thinkwell("serve", DEMO, "--port", "0", store=store) as second:
            output = await second.ends()
    assert second.status == 1
    assert "Error:" in output
    assert "Traceback" not in output


async def test_a_folder_with_agents_can_be_served(tmp_path: Path):
    (tmp_path / "agents").mkdir()
    for name in ("Ada", "Bo"):
        code = f"from thinkwell import Think\n\nclass {name}(Think): model = 'demo'\n"
        (tmp_path / "agents" / f"{name.lower()}.py").write_text(code)
    where = (str(tmp_path), "--port", "0")
    async with thinkwell("serve", *where, store=tmp_path / "x.db") as process:
        found = await process.says(r"(?s)agents/(\w+)/.*agents/(\w+)/")
        assert found.groups() == ("ada", "bo")


async def test_serve_says_which_key_is_missing_and_serves_all_the_same(tmp_path: Path):
    file = tmp_path / "agents.py"
    file.write_text(
        "from thinkwell import Think\n"
        "class Ready(Think): model = 'demo'\n"
        "class Keyless(Think): model = 'groq:llama'\n"
        "class Modelless(Think): pass\n"
        "class Chooser(Think):\n    def get_model(self): raise RuntimeError('asked')\n"
    )
    async with thinkwell("serve", str(file), "--port", "0", store=tmp_path / "x.db") as process:
        address = await process.address()
        told = (await process.says(r"(?s)problem.*Press"))[0]
        async with aiohttp.ClientSession() as client, client.get(f"{address}/") as page:
            assert page.status == 200
        settings = f"{address}/_thinkwell/settings"
        async with aiohttp.ClientSession() as client, client.get(settings) as answer:
            problems = (await answer.json())["problems"]
    assert (
        "keyless: The model 'groq:llama' needs a key. Set GROQ_API_KEY, or pass api_key=...."
        in told
    )
    assert problems.keys() == {"keyless", "modelless"}
