"""What a deletion leaves, by the same scan that an erasure has to pass (spec/04 §21)."""

from __future__ import annotations

from pathlib import Path

from tests.operate.canary import CANARY, app_on, ask, found
from tests.operate.test_erasing import in_thread
from tests.wire.serving import serving


async def test_no_row_of_a_deleted_agent_is_left_and_a_compacted_file_has_no_piece_of_it(
    tmp_path: Path,
):
    path = tmp_path / "a.db"
    async with serving(app_on(path, [CANARY] * 6)) as url:
        for _ in range(6):
            await ask(url, "desk/own", "ann", f"{CANARY} asks " * 50)
    assert "messages" in found(path, CANARY)
    await in_thread(path, "agents", "delete", "desk/own", "--yes")
    # No table has it. Pages may have copies of rows that moved, which the page on operations says.
    assert found(path, CANARY) <= {path.name}
    await in_thread(path, "doctor", "--compact")
    assert found(path, CANARY) == set()
