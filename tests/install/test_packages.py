"""What is installed is complete, however it was built: types, SQL and the page travel along."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.install.packaging import (
    PAGE,
    ROOT,
    attempt,
    build,
    clean_clone,
    names_in,
    page_in,
    run,
    without_node,
)
from tests.travel.support import asked, case_of
from tests.turns.support import running
from thinkwell import Think, tool
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call

PACKAGE = ROOT / "src" / "thinkwell"
HATCH = (sys.executable, "-m", "hatchling", "build", "-t", "wheel")


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def names(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a freshly built package."""
    return names_in(build(request.param, tmp_path_factory.mktemp(request.param)))


def packaged(pattern: str) -> set[str]:
    return {f"thinkwell/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.rglob(pattern)}


def test_a_package_holds_every_module_all_sql_and_the_marker_for_type_checkers(names: set[str]):
    assert packaged("*.sql")
    assert (packaged("*.py") | packaged("*.sql") | {"thinkwell/py.typed"}) - names == set()


def test_a_package_holds_the_page(names: set[str]):
    assert page_in(names) == set(PAGE)


def test_the_wheel_holds_the_license_and_the_command(tmp_path: Path):
    names = {name.partition(".dist-info/")[2] for name in names_in(build("wheel", tmp_path))}
    assert {"licenses/LICENSE", "entry_points.txt"} <= names


PROJECT = '''
from pathlib import Path

import thinkwell
from thinkwell import Think, tool


class Clerk(Think):
    system_prompt = "You file things."

    @tool(effect="pure")
    async def look(self, what: str) -> str:
        """Looks something up."""
        return what


def test_the_turn_goes_as_it_went(replay):
    assert Path(thinkwell.__file__).is_relative_to({installed!r})
    replay("case.json", Clerk, allow=["model"])
'''


async def test_the_fixture_replay_is_there_wherever_the_wheel_is_installed(tmp_path: Path):
    """Any turn becomes a test, without a line of configuration in the project."""
    installed, project = tmp_path / "installed", tmp_path / "project"
    project.mkdir()
    wheel = build("wheel", tmp_path, THINKWELL_NO_PAGE="1")
    with zipfile.ZipFile(wheel) as archive:
        (points,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        declared = archive.read(points).decode()
        archive.extractall(installed)
    assert "[pytest11]" in declared
    assert "= thinkwell.pytest_plugin\n" in declared
    await write_case(project / "case.json")
    (project / "test_case.py").write_text(PROJECT.format(installed=str(installed)))
    said = run(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."),
        cwd=project,
        env={"PYTHONPATH": str(installed)},
    )
    assert "1 passed" in said


async def write_case(path: Path) -> None:
    class Clerk(Think, name="clerk"):
        system_prompt = "You file things."

        @tool(effect="pure")
        async def look(self, what: str) -> str:
            """Looks something up."""
            return what

    store = SqliteStore(":memory:")
    async with running(Clerk, [call("look", {"what": "x"})], "done", store=store) as stage:
        await asked(stage, "hi", "q1")
        (await case_of(store, "q1")).save(path)


class TestFromACleanClone:
    def test_the_page_is_built_into_the_wheel(self, tmp_path: Path):
        clone = clean_clone(tmp_path / "clone")
        assert page_in(names_in(build("wheel", tmp_path / "dist", clone))) == set(PAGE)

    def test_an_sdist_makes_a_wheel_with_the_page_where_there_is_no_node(self, tmp_path: Path):
        unpacked = tmp_path / "unpacked"
        shutil.unpack_archive(build("sdist", tmp_path), unpacked)
        (tree,) = unpacked.iterdir()
        path = without_node(tmp_path / "bin")
        assert page_in(names_in(build("wheel", tmp_path / "dist", tree, PATH=path))) == set(PAGE)

    def test_without_node_nothing_is_built_and_the_text_says_what_to_do(self, tmp_path: Path):
        clone, path = clean_clone(tmp_path / "clone"), without_node(tmp_path / "bin")
        status, said = attempt(*HATCH, cwd=clone, env={"PATH": path})
        assert status == 1
        assert "The chat page has to be built, and there is no Node with npm on the PATH." in said
        assert "THINKWELL_NO_PAGE=1" in said
        assert "Traceback" not in said

    def test_whoever_wants_no_page_says_so(self, tmp_path: Path):
        clone = clean_clone(tmp_path / "clone")
        path = without_node(tmp_path / "bin")
        built = build("wheel", tmp_path / "dist", clone, PATH=path, THINKWELL_NO_PAGE="1")
        assert page_in(names_in(built)) == set()


class TestMake:
    """Which commands `make` would run, where nothing is installed yet and where all is."""

    def told(self, folder: Path, target: str) -> str:
        return run("make", "-n", target, f"VENV={folder}")

    def test_running_installs_no_tools_of_development(self, tmp_path: Path):
        said = self.told(tmp_path / "none", "run")
        assert "-e .\n" in said
        assert "[dev]" not in said
        assert "--quiet" not in said

    def test_an_environment_that_has_everything_is_left_alone(self, tmp_path: Path):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "python").touch()
        (tmp_path / ".installed").touch()
        assert "pip" not in self.told(tmp_path, "run")

    def test_testing_installs_everything_also_after_a_run(self, tmp_path: Path):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "python").touch()
        (tmp_path / ".runs").touch()
        assert "-e '.[dev]'" in self.told(tmp_path, "test")

    def test_dist_builds_both(self, tmp_path: Path):
        assert "hatchling build -t sdist -t wheel -d dist" in self.told(tmp_path, "dist")
