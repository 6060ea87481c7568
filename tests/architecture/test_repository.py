"""What must never be in the repository: machine paths, registry hosts, addresses in locks."""

from __future__ import annotations

import re
import tomllib
from itertools import chain

from tests.architecture.support import ROOT, repository_files, text_of

# Put together from pieces, so that this file does not contain what it forbids.
MACHINE_PATHS = re.compile(r"(?<![\w.~$}/-])/(?:" + "|".join(["work", "root", "tmp"]) + r")/")
HOSTS = "|".join(
    [r"pypi\.org", r"files\.pythonhosted\." + "org", r"registry\.npmjs\." + "org", "yarnpkg"]
)
REGISTRIES = re.compile(rf"https?://[\w.-]*(?:{HOSTS})|--(?:extra-)?index-url|find-links")


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    found: list[str] = []
    for path in repository_files():
        for number, line in enumerate((text_of(path) or "").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    return [place for place in found if not place.startswith("tests/architecture/test_repository")]


def test_no_file_knows_a_path_of_somebodys_machine():
    assert lines_that_match(MACHINE_PATHS) == []


def test_no_file_names_a_package_registry():
    assert lines_that_match(REGISTRIES) == []


def test_there_is_no_uv_lock():
    assert [p for p in repository_files() if p.name == "uv.lock"] == []


def test_package_locks_hold_no_addresses():
    locks = [p for p in repository_files() if p.name == "package-lock.json"]
    assert [p for p in locks if '"resolved"' in p.read_text()] == []


def test_constraints_are_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.+!]+", pin)] == []


def test_every_declared_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = chain(project["dependencies"], *project["optional-dependencies"].values())
    names = {re.split(r"[\[<>=;! ]", item)[0].lower() for item in declared}
    pinned = {
        line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    assert sorted(names - pinned) == []
