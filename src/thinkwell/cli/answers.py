"""What a terminal says about a tool call, and the frame that says it."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkwell.messages.message import Part, tool_name


class AnswerToCall(msgspec.Struct, frozen=True):
    """What a person, or this client, says about one tool call."""

    part: Part
    allowed: bool | None = None
    """For calls that need permission; None says that this client cannot run the tool."""

    @property
    def call_id(self) -> str:
        """Which call it is about."""
        return self.part["toolCallId"]

    def frame(self) -> dict[str, Any]:
        """The answer as it is sent."""
        if self.allowed is not None:
            return {
                "type": "cf_agent_tool_approval",
                "toolCallId": self.call_id,
                "approved": self.allowed,
                "autoContinue": True,
            }
        name = tool_name(self.part)
        return {
            "type": "cf_agent_tool_result",
            "toolCallId": self.call_id,
            "toolName": name,
            "state": "output-error",
            "errorText": f"This client is a terminal and cannot run {name}.",
            "autoContinue": True,
        }
