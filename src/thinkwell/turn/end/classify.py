"""What kind of error ended a turn: `classify_chat_error` is asked (spec/02 §5.15, DESIGN §8.6), and
the log is told.
"""

from __future__ import annotations

import logging

from thinkwell.core.errors import ConfigurationError, EmptyPromptError
from thinkwell.core.user_code import code_fields, is_wrong_answer, raised_in
from thinkwell.hooks.contexts import ChatErrorContext, Classification, Stage
from thinkwell.models.error_classes import default_error_classifier
from thinkwell.turn.end.ending import Failed
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step_result import has_content

log = logging.getLogger("thinkwell.turn")


def error_context(
    turn: RunningTurn, stage: Stage, error: Exception, classification: Classification | None
) -> ChatErrorContext:
    """What the error hooks are given."""
    return ChatErrorContext(
        **turn.hook_fields(),
        error=error,
        stage=stage,
        classification=classification,
        messages_persisted=turn.input_applied,
        partial=turn.reply.fold.snapshot() if has_content(turn.reply.fold.message) else None,
        attempt=max(turn.record.attempt - 1, 0),
    )


async def classify(turn: RunningTurn, stage: Stage, error: Exception) -> Classification | None:
    """What the hooks say; None if they say nothing."""
    if not turn.parts.hooks.registry.hooks("classify_chat_error"):
        return None
    context = error_context(turn, stage, error, None)
    return await turn.parts.hooks.classify_chat_error(error, context)


def usual_class(stage: Stage, error: Exception) -> Classification | None:
    """What an error of a model call is if no hook says so; of other errors nothing is known."""
    return default_error_classifier(error) if stage == "stream" else None


def log_failed(turn: RunningTurn, ending: Failed) -> None:
    """Whatever clients read: whoever runs the server sees what was raised, and in which code."""
    code = raised_in(ending.error)
    place = f"stage {ending.stage}" if code is None else f"stage {ending.stage}, {code}"
    # Nothing to answer is what a client sent, no defect: it must not fill the log. How we found a
    # mistake in the program (no key, no such model, a wrong answer of a hook) helps nobody: its
    # text says what to write.
    told = isinstance(ending.error, ConfigurationError) or is_wrong_answer(ending.error)
    trace = None if told or isinstance(ending.error, EmptyPromptError) else ending.error
    agent, request = turn.record.agent_id, turn.record.request_id
    about = {"action": f"turn:{ending.stage}", "agent": agent, "turn": request}
    text = "a turn failed in %s (agent %s, turn %s)" + (": %s" if told else "")
    values = (place, agent, request, *([ending.error] if told else []))
    log.error(text, *values, exc_info=trace, extra={**about, **code_fields(ending.error)})
