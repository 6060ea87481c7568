"""What may be named on the command line."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("name", ["application", "_app", "App_of_mine"])
def test_the_only_app_of_a_file_decides_whatever_its_name(write: Callable[[str], str], name: str):
    line = f"{name} = again = App(agents=[Helper], auth=lambda *_: None, store='sqlite:///mine.db')"
    app = load_app(write(f"{AGENTS}{line}"))
    assert (app.agent_names, app.store) == (("aid",), "sqlite:///mine.db")
    assert app.auth is not None


def test_an_app_that_a_file_imports_decides_too(write: Callable[[str], str], tmp_path: Path):
    (tmp_path / "elsewhere.py").write_text(
        "from thinkwell import App, Think\nclass Guarded(Think): ...\n"
        "application = App(agents=[Guarded], auth=lambda *_: None)"
    )
    path = write(f"from elsewhere import application\n{AGENTS}")
    assert load_app(path).agent_names == ("guarded",)


def test_app_decides_among_several(write: Callable[[str], str]):
    text = "other = App(agents=[Assistant])\napp = App(agents=[Helper])"
    assert load_app(write(f"{AGENTS}{text}")).agent_names == ("aid",)


class TestSeveralAppsOfWhichNoneIsCalledApp:
    TEXT = f"{AGENTS}open_ = App(agents=[Assistant])\nclosed = App(agents=[Helper])"

    def test_are_refused_by_name(self, write: Callable[[str], str]):
        with pytest.raises(click.ClickException) as caught:
            load_app(write(self.TEXT))
        assert caught.value.message == (
            "Which app do you mean? Write `written.py:open_` or `written.py:closed`, or call it "
            "`app`."
        )

    @pytest.mark.parametrize("path", ["written.py:closed", "written:closed"])
    def test_can_be_told_apart(self, write: Callable[[str], str], path: str):
        write(self.TEXT)
        assert load_app(path).agent_names == ("aid",)

    @pytest.mark.parametrize("path", ["written", "written:app", "written.py:app"])
    def test_are_named_where_app_is_asked_for(self, write: Callable[[str], str], path: str):
        write(self.TEXT)
        place = path.partition(":")[0]
        with pytest.raises(click.ClickException, match=f"is missing. Write `{place}:open_` or"):
            load_app(path)


def test_a_module_and_attribute_can_be_named(write: Callable[[str], str]):
    write(AGENTS + "other = App(agents=[Assistant])")
    assert load_app("written:other").agent_names == ("assistant",)


@pytest.fixture
def folder(tmp_path: Path, write: Callable[[str], str]) -> Iterator[Path]:
    """A folder with agents/; the modules are forgotten afterwards."""
    (tmp_path / "agents").mkdir()
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "agents"]:
        del sys.modules[name]


class TestAFolder:
    def test_serves_the_agents_of_its_files_in_order(self, folder: Path):
        (folder / "agents" / "b.py").write_text(
            "from agents.shared import Base\nclass B(Base): ..."
        )
        (folder / "agents" / "a.py").write_text("from thinkwell import Think\nclass A(Think): ...")
        (folder / "agents" / "shared.py").write_text(
            "from thinkwell import Think\nclass Base(Think, name='base'): model = 'demo'"
        )
        assert load_app(str(folder)).agent_names == ("a", "b", "base")

    def test_may_be_a_package(self, folder: Path):
        (folder / "agents" / "__init__.py").write_text("MODEL = 'demo'")
        (folder / "agents" / "a.py").write_text(
            "from agents import MODEL\nfrom thinkwell import Think\nclass A(Think): model = MODEL"
        )
        assert load_app(str(folder)).agent_names == ("a",)

    def test_wins_over_an_installed_package_of_that_name(self, folder: Path):
        installed = folder / "installed"
        (installed / "agents").mkdir(parents=True)
        (installed / "agents" / "__init__.py").write_text("raise RuntimeError")
        sys.path.insert(0, str(installed))
        (folder / "agents" / "a.py").write_text("from thinkwell import Think\nclass A(Think): ...")
        assert load_app(str(folder)).agent_names == ("a",)

    @pytest.mark.parametrize(("file", "says"), [("", "has no agents/"), ("a.py", "no agent")])
    def test_without_agents_says_what_to_write(self, folder: Path, file: str, says: str):
        if file:
            (folder / "agents" / file).write_text("x = 1")
        with pytest.raises(click.ClickException, match=says):
            load_app(str(folder))

    def test_refuses_an_app_that_it_would_not_use(self, folder: Path):
        text = "from thinkwell import App, Think\nclass A(Think): ...\nmine = App(agents=[A])"
        (folder / "agents" / "a.py").write_text(text)
        with pytest.raises(click.ClickException, match=r"has an App, mine.*a\.py:mine`"):
            load_app(str(folder))


def test_an_agent_without_chat_is_served_too(write: Callable[[str], str]):
    text = "from thinkwell import Agent\nclass Counter(Agent): ..."
    assert load_app(write(text)).agent_names == ("counter",)


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


def test_an_error_inside_the_module_is_shown_from_the_users_first_line_on(
    write: Callable[[str], str],
):
    written = Path(write("import not_installed_anywhere")).resolve()
    with pytest.raises(click.ClickException) as caught:
        load_app("written:app")
    assert caught.value.message == (
        "written:app cannot be loaded.\n"
        "Traceback (most recent call last):\n"
        f'  File "{written}", line 1, in <module>\n'
        "    import not_installed_anywhere\n"
        "ModuleNotFoundError: No module named 'not_installed_anywhere'"
    )


def test_a_mistake_that_we_found_is_one_line_with_the_users_file_and_line(
    write: Callable[[str], str],
):
    path = write("from thinkwell import Think\n\nclass A(Think):\n    max_step = 3")
    with pytest.raises(click.ClickException) as caught:
        load_app(path)
    assert re.fullmatch(
        r".*written\.py:3: A\.max_step would do nothing\. [^\n]*", caught.value.message
    )


def test_a_call_that_python_would_refuse_is_told_in_one_line_too(write: Callable[[str], str]):
    path = write("from thinkwell import App\napp = App(agnets=[])")
    with pytest.raises(click.ClickException, match=r"written\.py:2: App\(\) has no 'agnets'\."):
        load_app(path)


def test_a_file_that_is_no_python_is_shown_with_its_line(write: Callable[[str], str]):
    path = write("class A(Think)\n    pass")
    with pytest.raises(click.ClickException) as caught:
        load_app(path)
    assert caught.value.message.startswith(f"{path} cannot be read.\n  File")
    assert caught.value.message.endswith("SyntaxError: expected ':'")
