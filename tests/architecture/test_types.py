"""The package is typed: pyright in strict mode finds nothing, and says so to its users."""

from __future__ import annotations

import json

import pytest

from tests.architecture.support import PACKAGE, run_tool


@pytest.mark.timeout(300)
def test_pyright_strict_finds_no_error_in_the_package():
    done = run_tool("pyright", "--outputjson")
    report = json.loads(done.stdout)
    found = [
        f"{item['file']}:{item['range']['start']['line'] + 1} {item['message']}"
        for item in report["generalDiagnostics"]
        if item["severity"] == "error"
    ]
    assert found == []
    assert report["summary"]["filesAnalyzed"] > 0


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").is_file()
