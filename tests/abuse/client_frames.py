"""What a tab says: the frames of spec/01 §3.1 as the npm hook writes them."""

from __future__ import annotations

import json
from typing import Any

from tests.abuse.npm_fold import Message

Frame = dict[str, Any]
CLIENT_TOOLS = [{"name": "ask"}]


def chat_request(request_id: str, messages: list[Message], trigger: str) -> Frame:
    """A question, with the whole list the tab shows."""
    body = {"messages": messages, "trigger": trigger, "clientTools": CLIENT_TOOLS}
    init = {"method": "POST", "body": json.dumps(body)}
    return {"type": "cf_agent_use_chat_request", "id": request_id, "init": init}


def cancel(request_id: str) -> Frame:
    """Stop that turn."""
    return {"type": "cf_agent_chat_request_cancel", "id": request_id}


def clear() -> Frame:
    """Delete the conversation."""
    return {"type": "cf_agent_chat_clear"}


def probe(probe_id: str) -> Frame:
    """Is there a stream to join?"""
    return {"type": "cf_agent_stream_resume_request", "probeId": probe_id}


def ack(request_id: str) -> Frame:
    """Take the stream that was offered."""
    return {"type": "cf_agent_stream_resume_ack", "id": request_id}


def tool_result(call_id: str, output: Any) -> Frame:
    """The result of a client tool."""
    return {
        "type": "cf_agent_tool_result",
        "toolCallId": call_id,
        "toolName": "ask",
        "output": output,
        "autoContinue": True,
        "clientTools": CLIENT_TOOLS,
    }


def approval(call_id: str, *, approved: bool) -> Frame:
    """Leave for a call, or not."""
    decision = {"toolCallId": call_id, "approved": approved, "autoContinue": True}
    return {"type": "cf_agent_tool_approval", **decision}
