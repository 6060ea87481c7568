"""One style, kept by ruff."""

from __future__ import annotations

from tests.architecture.support import run_tool


def test_ruff_has_nothing_to_say():
    done = run_tool("ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_is_formatted():
    done = run_tool("ruff", "format", "--no-cache", "--check", ".")
    assert done.returncode == 0, done.stdout + done.stderr
