"""What is installed is complete: types, SQL and the page travel with the code."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.support import PACKAGE, ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a freshly built wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = Path(folder).glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


def packaged(pattern: str) -> set[str]:
    return {f"thinkwell/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.rglob(pattern)}


def test_the_wheel_holds_every_module(wheel: set[str]):
    assert packaged("*.py") - wheel == set()


def test_the_wheel_holds_the_marker_for_type_checkers(wheel: set[str]):
    assert "thinkwell/py.typed" in wheel


def test_the_wheel_holds_all_sql(wheel: set[str]):
    assert packaged("*.sql")
    assert packaged("*.sql") - wheel == set()


def test_the_wheel_holds_the_page(wheel: set[str]):
    expected = {f"thinkwell/server/page/{name}" for name in ("index.html", "app.js", "app.css")}
    assert expected - wheel == set()


def test_the_wheel_holds_the_license_and_the_command(wheel: set[str]):
    names = {name.partition(".dist-info/")[2] for name in wheel}
    assert {"licenses/LICENSE", "entry_points.txt"} <= names
