"""Lines of the log say for whom the code was working (DESIGN §8.18)."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

from tests.operate.canary import Desk, ask, who
from tests.wire.serving import serving
from thinkwell import App, tool
from thinkwell.core.logs import JsonLines
from thinkwell.testing import ScriptedModel, call

log = logging.getLogger("shop.orders")


class Shop(Desk):
    model = ScriptedModel([[call("order", {})], "Done."])

    @tool
    async def order(self) -> str:
        """Order something."""
        log.warning("%s is sold out", "tea", extra={"sku": 7})
        return "ordered"


async def test_a_line_that_a_tool_logs_names_agent_turn_and_principal(tmp_path: Path):
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    try:
        app = App(agents=[Shop], store=f"sqlite:///{tmp_path / 'a.db'}", auth=who)
        async with serving(app) as url:
            turn = await ask(url, "shop/one", "ann", "tea, please")
    finally:
        log.removeHandler(handler)
    said: dict[str, Any] = json.loads(written.getvalue())
    assert said.pop("at").endswith("+00:00")
    assert said == {
        "level": "WARNING",
        "logger": "shop.orders",
        "message": "tea is sold out",
        "agent": "shop/one",
        "turn": turn["requestId"],
        "principal": "ann",
        "sku": 7,
    }


def test_an_error_keeps_its_traceback_and_what_json_cannot_hold_is_told():
    record = logging.makeLogRecord({"msg": "x", "levelname": "ERROR", "odd": object()})
    try:
        raise KeyError("cost")
    except KeyError as error:
        record.exc_info = (KeyError, error, error.__traceback__)
    said = json.loads(JsonLines().format(record))
    assert "KeyError: 'cost'" in said["error"]
    assert said["odd"].startswith("<object")
