"""A copy that was taken while the server worked is a whole database, and work goes on from it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.operate.test_erasing import in_thread, rows
from tests.operate.test_transfer import app_on
from thinkwell.testing import pause


async def test_a_turn_in_the_middle_of_its_answer_goes_on_from_the_backup(tmp_path: Path):
    here, copy = tmp_path / "here.db", tmp_path / "copy.db"
    gate = pause()
    async with app_on(here, "Hello.", ["Once upon ", gate, "a time."]) as app:
        ann = app.agent("clerk", "ann")
        await ann.run("hello")
        await ann.submit("tell me a story")
        await gate.reached()
        await in_thread(here, "backup", str(copy))
    assert rows(copy, "PRAGMA integrity_check") == [("ok",)]
    async with app_on(copy, "and so on.", "Hi.") as app:
        ann = app.agent("clerk", "ann")
        await ann.run("are you there?")
        texts = [json.dumps(message["parts"]) for message in await ann.get_messages()]
        assert len(texts) == 6
        assert "Once upon " in texts[3]
        assert "and so on." in texts[3]
