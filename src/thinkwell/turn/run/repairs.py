"""What the agent makes of calls that never got their result (`repair_interrupted_tool_part`).

Asked before the transcript is repaired for a model request, once for each dead call. The answer is
stored in the call's place, so it has to be something every model accepts: what is not is reported,
and the call has failed, as it would have without an override.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from thinkwell.core import json
from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.core.user_code import WrongAnswerError, call_hook
from thinkwell.messages.message import Part, UIMessage, is_settled, is_tool_part
from thinkwell.messages.repair import RepairPart, repair_transcript
from thinkwell.turn.run.running import RunningTurn

NAME = "repair_interrupted_tool_part"


async def repairs_of(
    turn: RunningTurn, messages: list[UIMessage], default: RepairPart
) -> RepairPart:
    """How each dead call of these messages is repaired."""
    dead: list[Part] = []

    def note(part: Part) -> Part:
        dead.append(part)
        return part

    repair_transcript(messages, note)
    # By the whole part: providers use the id of a call again in a later message.
    chosen: dict[str, Part] = {}
    for part in dead:
        made = await _made_by_agent(turn, part)
        if made is not None:
            chosen[json.dumps(part)] = made
    return lambda part: chosen.get(json.dumps(part)) or default(part)


async def _made_by_agent(turn: RunningTurn, part: Part) -> Part | None:
    """One dead call as the agent wants it; None if it has nothing to say."""
    agent = turn.parts.agent
    try:
        # Its own copy: what it writes there and does not return must not be stored.
        made = await call_hook(
            NAME, agent.repair_interrupted_tool_part, json.loads(json.dumps(part))
        )
        return None if made is None else _checked(made)
    except (AbortTurn, FailTurn):
        raise
    except Exception as error:  # noqa: BLE001 - it would fail every later turn of the conversation
        turn.parts.hooks.report(NAME, f"{type(agent).__name__}.{NAME}", error)
        return None


def _checked(made: object) -> Part:
    part: Any = json.loads(json.dumps(made)) if isinstance(made, Mapping) else None
    if part is None or not isinstance(part.get("type"), str):
        raise WrongAnswerError(f"{NAME} returned {made!r:.100}; return a part or None.")
    if is_tool_part(part) and not is_settled(part):
        raise WrongAnswerError(
            f"{NAME} returned a call without its end; set `state` to 'output-available' with an "
            "`output` or to 'output-error' with an `errorText`, or return a text part."
        )
    return cast("Part", part)
