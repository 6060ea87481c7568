"""The table of docs/models.md says of each adapter what a probe sees it do."""

from __future__ import annotations

from tests.contracts.capabilities import PAGE, SUBJECTS, shown, table
from thinkwell.models.presets import NATIVE, PRESETS


async def test_the_page_says_what_the_adapters_can():
    """If this fails, look whether the change is meant: then run the module that writes the page."""
    assert shown(PAGE.read_text()) == await table(), "python -m tests.contracts.capabilities"


def test_every_native_adapter_has_a_column():
    assert len(SUBJECTS) == len({*NATIVE, "openai-chat"}) + 1
    assert PRESETS  # all of them speak chat completions: that is their column
