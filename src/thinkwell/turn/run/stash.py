"""What the code of a turn keeps for the case that the turn is interrupted (spec/04 §5.9)."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import TurnError
from thinkwell.journal.turns import store_incident
from thinkwell.turn.run.running import current_turn

MAX_STASH_BYTES = 256 * 1024
"""It is written with every place that a later attempt goes to, so it has to stay small."""


async def stash(agent_id: str, data: Any) -> None:
    """Store `data` on the row of the turn that runs the current code."""
    turn = current_turn.get()
    if turn is None or not turn.active or turn.record.agent_id != agent_id:
        raise TurnError(
            "stash() keeps something with the turn that runs, and no turn of this agent runs here. "
            "Call it in a hook or a tool; `self.storage` keeps values beside the turns."
        )
    try:
        text = json.dumps(data)
    except (TypeError, ValueError) as error:
        raise TypeError(f"stash() takes what can be written as JSON: {error}") from error
    if len(text) > MAX_STASH_BYTES:
        raise ValueError(
            f"stash() was given {len(text):,} bytes; it keeps at most {MAX_STASH_BYTES:,}. Store "
            "the value with `self.storage` and stash its key."
        )
    incident = msgspec.structs.replace(turn.record.incident, stash=json.loads(text))
    turn.record = msgspec.structs.replace(turn.record, incident=incident)
    parts = turn.parts
    await parts.commits.insist(parts.owner, lambda tx: store_incident(tx, turn.record))
