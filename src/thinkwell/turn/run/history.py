"""Telling `on_message` of each message that enters the conversation the model sees (spec/02
§5.13).
"""

from __future__ import annotations

from thinkwell.hooks.contexts import MessageContext
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.turn.run.running import RunningTurn


async def tell_message(
    turn: RunningTurn,
    message: ModelMessage,
    step_number: int | None,
    ui_message_id: str | None = None,
) -> None:
    """One message has entered history."""
    if turn.parts.hooks.registry.hooks("on_message"):
        context = MessageContext(
            **turn.hook_fields(),
            message=message,
            ui_message_id=ui_message_id or turn.message_id,
            step_number=step_number,
        )
        await turn.parts.hooks.observe("on_message", context)
