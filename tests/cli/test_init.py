"""`thinkwell init`: what it makes runs, its test passes, and it overwrites nothing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import aiohttp
import pytest

from tests.cli.commands import COMMAND, environment, thinkwell
from thinkwell.cli.init import FILES, project_name


def run(*command: str, cwd: Path, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=cwd, env=environment(**env), capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    code, said = run(*COMMAND, "init", "my-agent", cwd=tmp_path)
    assert code == 0, said
    assert "cd my-agent" in said
    return tmp_path / "my-agent"


def test_it_writes_the_project_and_names_it(project: Path):
    assert sorted(path.name for path in project.iterdir()) == sorted(FILES)
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == "my-agent"
    assert (project / "README.md").read_text().startswith("# my-agent\n")


def test_its_test_passes(project: Path):
    # Not with the plugins that happen to be installed for our own tests.
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    code, said = run(sys.executable, "-m", "pytest", "-q", "-W", "error", cwd=project, **own)
    assert code == 0, said
    assert "1 passed" in said


async def test_it_is_served_and_answers(project: Path):
    async with thinkwell(
        "serve", str(project / "agent.py"), "--port", "0", store=project / "a.db"
    ) as server:
        address = await server.address()
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{address}/agents/assistant/me/run", json={"input": "hi"}) as answer,
        ):
            assert (await answer.json())["status"] == "completed"


def test_a_type_checker_finds_nothing_in_it(project: Path):
    """With its default settings, as a newcomer's editor has them."""
    pyright = (sys.executable, "-m", "pyright", "--pythonpath", sys.executable)
    code, said = run(*pyright, ".", cwd=project)
    assert code == 0, said
    assert "0 errors" in said


def test_a_linter_finds_nothing_in_it(project: Path):
    ruff = (sys.executable, "-m", "ruff")
    code, said = run(*ruff, "check", "--no-cache", "--select", "E,F,I,B,UP", ".", cwd=project)
    assert code == 0, said


@pytest.mark.parametrize("name", ["agent.py", "README.md"])
def test_nothing_is_overwritten_nor_half_written(tmp_path: Path, name: str):
    (tmp_path / name).write_text("mine")
    code, said = run(*COMMAND, "init", cwd=tmp_path)
    assert (code, f"has {name} already" in said) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_is_no_folder(tmp_path: Path):
    (tmp_path / "x").touch()
    code, said = run(*COMMAND, "init", "x", cwd=tmp_path)
    assert (code, "x is a file" in said) == (1, True)


@pytest.mark.parametrize(
    ("folder", "name"), [("My Agent", "my-agent"), ("...", "my-agent"), ("größe_1", "gr-e_1")]
)
def test_the_name_is_one_that_packages_may_have(tmp_path: Path, folder: str, name: str):
    assert project_name(tmp_path / folder) == name
