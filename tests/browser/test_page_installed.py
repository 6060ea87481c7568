"""As the README begins: install a package into a new environment, begin a project, open the page,
get an answer.

pip takes the libraries from wherever it is told to, so these tests install what users would.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.page_support import ChatPage
from tests.cli.commands import Command, environment
from tests.install.packaging import build, install, new_environment, run, without_node

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with a wheel and everything it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    bin_folder = new_environment(folder / "env")
    install(bin_folder, str(build("wheel", folder)))
    return bin_folder


@asynccontextmanager
async def served(bin_folder: Path, folder: Path) -> AsyncIterator[str]:
    """The address of `thinkwell serve` of that environment, in a project that it has made."""
    run(str(bin_folder / "thinkwell"), "init", "my-agent", cwd=folder)
    process = await asyncio.create_subprocess_exec(
        *(str(bin_folder / "thinkwell"), "serve", "agent.py", "--port", "0"),
        cwd=folder / "my-agent",
        stdout=PIPE,
        stderr=STDOUT,
        env=environment(),
    )
    try:
        yield await Command(process).address()
    finally:
        process.terminate()
        await process.communicate()


async def gets_an_answer(page: Page, address: str) -> None:
    await page.goto(address)
    chat = ChatPage(page)
    await chat.settled()
    await chat.say("hello")
    await chat.settled()
    await expect(chat.answers).to_contain_text("You said")
    await page.goto("about:blank")


def code_of(bin_folder: Path, folder: Path) -> Path:
    ask = "import thinkwell; print(thinkwell.__file__)"
    return Path(run(str(bin_folder / "python"), "-c", ask, cwd=folder).strip())


async def test_a_wheel_brings_the_page_and_all_it_needs(
    page: Page, installed: Path, tmp_path: Path
):
    assert code_of(installed, tmp_path).is_relative_to(installed.parent)
    async with served(installed, tmp_path) as address:
        await gets_an_answer(page, address)


async def test_an_sdist_does_too_and_needs_no_node(page: Page, installed: Path, tmp_path: Path):
    bin_folder = new_environment(tmp_path / "env")
    path = without_node(tmp_path / "without-node")
    install(bin_folder, "--no-deps", str(build("sdist", tmp_path)), PATH=path)
    # The libraries are those of the wheel's environment: to fetch them twice would show nothing.
    (libraries,) = installed.parent.glob("lib/python3*/site-packages")
    (own,) = bin_folder.parent.glob("lib/python3*/site-packages")
    (own / "libraries.pth").write_text(str(libraries))
    assert code_of(bin_folder, tmp_path).is_relative_to(bin_folder.parent)
    async with served(bin_folder, tmp_path) as address:
        await gets_an_answer(page, address)
