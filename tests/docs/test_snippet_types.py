"""What a document shows is right for a type checker, too: readers copy it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_snippets import ROOT, SNIPPET

DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
REPEATED = "content[0].value"
"""How a scripted model repeats a tool's result; only the script knows that it is one."""


@pytest.mark.timeout(300)
def test_documented_snippets_pass_pyright(tmp_path: Path):
    for path in DOCUMENTS:
        text = path.read_text()
        name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
        for match in SNIPPET.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            lines = [
                f"{code}  # type: ignore" if REPEATED in code else code
                for code in match[1].splitlines()
            ]
            (tmp_path / f"{name}_line_{line}.py").write_text("\n".join(lines))
    # Not strict: a document leaves out annotations that would hide what it is about.
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}))
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors" in done.stdout


def test_what_public_methods_return_can_be_named():
    from thinkwell import InlineAgent
    from thinkwell.turns import TurnDetails

    assert InlineAgent.__name__ == "InlineAgent"
    assert "usage" in TurnDetails.__annotations__


def test_an_interactive_shell_completes_what_is_loaded_late():
    code = (
        "import thinkwell, thinkwell.features as f; print('App' in dir(thinkwell), 'Kit' in dir(f))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True True\n"
