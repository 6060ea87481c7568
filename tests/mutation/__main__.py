"""Change the pure decisions one operator at a time and see whether their tests notice.

`make mutate`, or `python -m tests.mutation [part of a module's name]`. Every mutant is one forked
process that imports the changed module and runs the tests named beside it. One that no test kills
is printed: write the test, or explain in `equivalent.txt` why nobody could see the difference.
Only one process works at a time; run it with `nice`.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

import hypothesis  # noqa: F401 - imported once here, so that no mutant has to
import msgspec  # noqa: F401
import pytest
import pytest_asyncio  # noqa: F401

from tests.mutation.mutants import mutants_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECONDS = 60
"""A mutant that runs longer than this hangs, which is noticed too."""

UNIT = "tests/unit"
MESSAGES = f"{UNIT}/messages"
TARGETS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    # module: (its pure functions, or none for all of it; the tests that must notice)
    "thinkwell.turn.ask.policy": (
        ["read_policy", "plan_intake", "_overlapping", "_same"],
        [f"{UNIT}/turn/test_policy.py"],
    ),
    "thinkwell.turn.run.steps": (["decide_next"], [f"{UNIT}/turn/test_resume.py"]),
    "thinkwell.turn.run.resume": (["read_position"], [f"{UNIT}/turn/test_resume.py"]),
    "thinkwell.turn.run.step_result": (["stop_reason_of"], [f"{UNIT}/turn/test_resume.py"]),
    "thinkwell.journal.budget": ((), [f"{UNIT}/journal/test_budget.py"]),
    "thinkwell.messages.repair": ((), [f"{MESSAGES}/test_repair.py"]),
    "thinkwell.messages.fold": (
        (),
        [
            f"{MESSAGES}/test_fold_message.py",
            f"{MESSAGES}/test_fold_tools.py",
            f"{MESSAGES}/test_continuation.py",
            f"{MESSAGES}/test_late_outcomes.py",
            f"{MESSAGES}/test_apply_result.py",
            f"{MESSAGES}/test_recorded_streams.py",
            f"{MESSAGES}/test_fold_writing.py",
            f"{MESSAGES}/test_fold_properties.py",
        ],
    ),
}


class ChangedModule(SourceFileLoader):
    """Loads a module from code that is nowhere written down."""

    def __init__(self, module: str, path: Path, code: CodeType) -> None:
        super().__init__(module, str(path))
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class Finder:
    """Gives the changed module to whoever imports it."""

    def __init__(self, module: str, path: Path, code: CodeType) -> None:
        self._module, self._loader = module, ChangedModule(module, path, code)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, self._loader.path, loader=self._loader)


def source_of(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def survives(module: str, tests: Sequence[str], tree: ast.Module) -> bool:
    """Whether the tests pass in a process of their own with this module changed."""
    path = source_of(module)
    code = compile(tree, str(path), "exec")
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.meta_path.insert(0, Finder(module, path, code))
        # A fixed seed: a mutant dies of its change, not of today's examples.
        options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += ["--hypothesis-seed=1", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        try:
            os._exit(int(pytest.main([*options, *tests])))
        finally:
            os._exit(1)  # a mutant that raised something pytest lets through
    return _status(child) == 0


def _status(child: int) -> int:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def explained() -> set[str]:
    """The mutants that are known to change nothing anybody could see."""
    lines = (HERE / "equivalent.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith(("#", " "))}


def report(module: str, functions: Sequence[str], tests: Sequence[str]) -> Iterator[str]:
    """The names of the mutants of one module that no test noticed."""
    source, known = source_of(module).read_text(), explained()
    assert survives(module, tests, ast.parse(source)), f"the tests of {module} fail as it is"
    count, lived = 0, 0
    for mutant in mutants_of(source, functions):
        count += 1
        name = f"{module} {mutant.name}"
        if name not in known and survives(module, tests, mutant.tree):
            lived += 1
            print(f"  survived: {name}", flush=True)
            yield name
    print(f"{module}: {count} mutants, {lived} survived", flush=True)


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    survivors = [
        name
        for module, (functions, tests) in TARGETS.items()
        if wanted in module
        for name in report(module, functions, tests)
    ]
    return len(survivors) > 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    sys.exit(main())
