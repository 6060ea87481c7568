"""User code, as pyright in strict mode and `mypy --strict` see it (`passes/`, `fails/`).

A file in `fails/` says above a line what each checker finds wrong with it:

    # E pyright: "str" is not assignable to "TurnConfig"
    # E mypy: Incompatible return value type

`nothing` is for what a checker does not see. Each checker runs once over all files. The first line
of those files, `# type: ignore`, keeps the checks of this repository quiet about them and is left
out here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".mypy_cache"
EXPECTED = re.compile(r"^\s*# E (pyright|mypy): (.+)$")
MYPY_ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+):(?:\d+:)? error: (?P<text>.*)$")

Place = tuple[str, int]
Errors = dict[Place, str]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files beside no configuration of ours: as if a user had them."""
    folder = tmp_path_factory.mktemp("user_code")
    for kind in ("passes", "fails"):
        shutil.copytree(HERE / kind, folder / kind)
        for path in (folder / kind).glob("*.py"):
            path.write_text(path.read_text().replace("# type: ignore\n", "\n", 1))
    return folder


@pytest.mark.timeout(300)
def test_pyright_strict_finds_what_is_wrong_and_nothing_else(code: Path):
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (code / "pyrightconfig.json").write_text(json.dumps(config))
    report = json.loads(
        run("pyright", "--pythonpath", sys.executable, "-p", str(code), "--outputjson", cwd=code)
    )
    assert report["summary"]["filesAnalyzed"] == len(list(code.glob("*/*.py")))
    found: dict[Place, list[str]] = {}
    for item in report["generalDiagnostics"]:
        place = (name_of(code, Path(item["file"])), item["range"]["start"]["line"] + 1)
        found.setdefault(place, []).append(item["message"])
    compare(found, expected(code, "pyright"))


@pytest.mark.timeout(300)
def test_mypy_strict_finds_what_is_wrong_and_nothing_else(code: Path):
    options = ("--strict", "--python-version", "3.11", "--cache-dir", str(CACHE), "--no-pretty")
    named = ("--explicit-package-bases", "--config-file=")  # two files may have one name
    said = run("mypy", *options, *named, "passes", "fails", cwd=code)
    found: dict[Place, list[str]] = {}
    for match in filter(None, map(MYPY_ERROR.match, said.splitlines())):
        found.setdefault((match["file"], int(match["line"])), []).append(match["text"])
    assert found, said
    compare(found, expected(code, "mypy"))


def run(checker: str, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", checker, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd).stdout


def name_of(code: Path, path: Path) -> str:
    return path.resolve().relative_to(code.resolve()).as_posix()


def expected(code: Path, checker: str) -> Errors:
    """What the comments say, by the line below them."""
    wanted: Errors = {}
    for path in sorted(code.glob("fails/*.py")):
        waiting: dict[str, str] = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := EXPECTED.match(line):
                waiting[match[1]] = match[2]
            elif waiting:
                assert set(waiting) == {"pyright", "mypy"}, f"{path.name}:{number} names one only"
                if waiting[checker] != "nothing":
                    wanted[name_of(code, path), number] = waiting[checker]
                waiting = {}
    return wanted


def compare(found: dict[Place, list[str]], wanted: Errors) -> None:
    surprising = [
        f"{file}:{line} {text}"
        for (file, line), texts in sorted(found.items())
        if (file, line) not in wanted or not any(wanted[file, line] in text for text in texts)
        for text in texts
    ]
    missing = [f"{file}:{line} {wanted[file, line]}" for file, line in wanted.keys() - found.keys()]
    assert not surprising, "\n".join(["not expected:", *surprising])
    assert not missing, "\n".join(["not found:", *missing])
