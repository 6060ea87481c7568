"""What may be named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from thinkwell.cli.loading import load_app

AGENTS = """
from thinkwell import App, Think

class Assistant(Think): model = "demo"
class Helper(Think, name="aid"): model = "demo"
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Writes a module for the test; it is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> str:
        (tmp_path / "written.py").write_text(text)
        return "written.py"

    yield write
    sys.modules.pop("written", None)


def test_a_file_without_app_serves_every_agent_it_defines(write: Callable[[str], str]):
    assert load_app(write(AGENTS)).agent_names == ("assistant", "aid")


def test_an_app_in_the_file_decides(write: Callable[[str], str]):
    assert load_app(write(AGENTS + "app = App(agents=[Helper])")).agent_names == ("aid",)


def test_a_module_and_attribute_can_be_named(write: Callable[[str], str]):
    write(AGENTS + "other = App(agents=[Assistant])")
    assert load_app("written:other").agent_names == ("assistant",)


def test_the_store_of_the_command_line_wins(write: Callable[[str], str]):
    assert load_app(write(AGENTS), store="sqlite://:memory:").store == "sqlite://:memory:"


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("x = 1", "written.py", "defines no agent"),
        ("app = 1", "written.py", "is a int"),
        ("x = 1", "written:app", "is missing"),
        ("x = 1", "nowhere.py", "There is no file"),
        ("x = 1", "nowhere:app", "There is no module 'nowhere'"),
    ],
)
def test_a_mistake_says_what_to_write(write: Callable[[str], str], text: str, path: str, says: str):
    write(text)
    with pytest.raises(click.ClickException, match=says):
        load_app(path)


def test_an_import_error_inside_the_module_is_shown_as_it_is(write: Callable[[str], str]):
    write("import not_installed_anywhere")
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        load_app("written:app")
