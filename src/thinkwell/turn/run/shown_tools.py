"""Which input schemas the model was shown, of calls that are read back.

Between a call and its execution the process may have been started anew with other code. A call of
the interrupted step finds its schema in the journal, by the hash in the request that led to it; one
that has waited for a person finds it where it was kept when it began to wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkwell.core import json
from thinkwell.journal.blobs import read_blob
from thinkwell.journal.turn_log import LogEvent
from thinkwell.turn.run.running import RunningTurn

Schema = Mapping[str, Any]


async def shown_in_step(turn: RunningTurn) -> dict[str, Schema]:
    """The schemas of the step that was interrupted, by tool; empty if nothing is known of it."""
    digest = tools_of_step(turn.log.events, turn.step_number)
    text = None if digest is None else await read_blob(turn.parts.store, digest)
    if text is None:
        return {}
    return {spec["name"]: spec["input_schema"] for spec in json.loads(text)}


def tools_of_step(events: list[LogEvent], step: int) -> str | None:
    """The hash of the tools in the last request of a step."""
    for event in reversed(events):
        if event.kind == "request":
            body = json.loads(event.body)
            if body["step"] == step:
                return body.get("tools")
    return None
