"""Every Python block in the documents runs, and prints the text block that follows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.M | re.S)


def snippets() -> list[object]:
    found: list[object] = []
    for path in DOCUMENTS:
        text = path.read_text()
        for match in SNIPPET.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            place = f"{path.relative_to(ROOT)}:{line}"
            found.append(pytest.param(match[1], match[2], id=place))
    return found


def run_snippet(code: str, folder: Path) -> str:
    (folder / "snippet.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", "snippet.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("code", "output"), snippets())
def test_a_documented_snippet_runs_and_prints_what_is_said(
    code: str, output: str | None, tmp_path: Path
):
    printed = run_snippet(code, tmp_path)
    assert output is None or printed == output


def test_the_readme_shows_an_agent():
    assert any("README.md" in str(getattr(item, "id", "")) for item in snippets())
