"""Structured output: reading and validating it at the end of a turn (spec/02 §8.3–8.4)."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import OutputError
from thinkwell.messages.model_messages import ModelMessage, TextContent, UserMessage
from thinkwell.tools.output import correction_request
from thinkwell.turn.end.ending import StageError
from thinkwell.turn.run.reply import StepReply
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step


class OutputPending(msgspec.Struct, frozen=True):
    """The output was refused and is asked for again."""

    messages: tuple[ModelMessage, ...]


def read_output(turn: RunningTurn, step: Step, reply: StepReply) -> Any:
    """The validated output, or `OutputPending`.

    Raises at stage `output` when retries are used up.
    """
    output = step.output
    if output is None:
        return None
    try:
        if step.answer_tool is None or step.response is not None:
            return output.parse(turn.steps[-1].text)
        if reply.final_answer is None:
            raise OutputError((f"the model ended without calling {step.answer_tool!r}",))
        return output.validate(_arguments(reply.final_answer))
    except OutputError as error:
        if turn.output_tries >= output.retries:
            raise StageError("output", error) from error
        turn.output_tries += 1
        asked = UserMessage((TextContent(correction_request(error)),))
        return OutputPending((asked,))


def _arguments(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError as error:
        raise OutputError((f"the answer is no JSON ({error})",), text) from error
