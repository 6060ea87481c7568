"""`docs/models.md` names every provider there is a native adapter for, with its variables."""

import re

from tests.architecture.support import ROOT
from thinkwell.models.presets import NATIVE, PRESETS


def test_the_table_of_names_is_the_table_of_the_code():
    page = (ROOT / "docs" / "models.md").read_text()
    table = page.partition("## By name")[2].partition("\n\n| ")[2].partition("\n\n")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")] for line in table.splitlines()[2:]]
    told = {row[1].partition(":")[0]: (row[3], row[4]) for row in rows}
    told.pop("demo")
    assert told == {
        name: (preset.key_variable, preset.url_variable)
        for name, preset in {**NATIVE, **PRESETS}.items()
    }


def test_what_a_model_may_have_is_what_the_code_looks_for():
    page = (ROOT / "docs" / "models.md").read_text()
    section = page.partition("\n## Your own model")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)(?:\(\))?` \|", section, re.M))
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    looked_for = set(re.findall(r'getattr\(model, "(\w+)"', sources))
    assert told == looked_for - {"asks_others", "models"}  # which a fallback chain has
