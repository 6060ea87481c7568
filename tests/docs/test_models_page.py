"""`docs/models.md` names every provider there is a native adapter for, with its variables."""

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
