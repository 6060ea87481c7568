"""Asking `classify_chat_error` what kind of error this is (spec/02 §5.15, DESIGN §8.6)."""

from __future__ import annotations

from thinkwell.hooks.contexts import ChatErrorContext, Classification, Stage
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step_result import has_content


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
