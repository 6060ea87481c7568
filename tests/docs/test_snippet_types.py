"""What a document shows is right for a type checker, too: readers copy it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.docs.test_snippets import ROOT, SNIPPET

DOCUMENTS = ("jobs.md", "features.md", "state-and-rpc.md")


def test_documented_snippets_pass_pyright(tmp_path: Path):
    for name in DOCUMENTS:
        text = (ROOT / "docs" / name).read_text()
        for match in SNIPPET.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            (tmp_path / f"{name.partition('.')[0]}_line_{line}.py").write_text(match[1])
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
