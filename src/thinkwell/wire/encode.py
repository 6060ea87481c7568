"""What the server sends, as frame text (spec/01 §3.2, §3.4).

One function per frame. Flags and optional fields appear only when set (§0.5). The transcript frame
joins messages that were encoded before, and the chunk maker prepares everything but body and number
once per stream: both run far more often than the rest.
Contract: strings handed in hold no lone surrogates (`core.json.to_jsonable` has seen them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from thinkwell.core.json import dumps

Outcome = Literal["completed", "error", "aborted", "skipped", "recovering"]
ChunkFrame = Callable[[str, int], str]
"""`(body, seq) -> frame`: the frame of one chunk of the stream it was made for."""


class LongText:
    """A frame so long that it is kept and written in pieces, which many connections share."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))

    def __len__(self) -> int:
        return self.size

    def __str__(self) -> str:
        return b"".join(self.pieces).decode()


Frame: TypeAlias = str | LongText
"""What goes out as one WebSocket message."""

_RESPONSE = '{"type":"cf_agent_use_chat_response","id":'
_NO_MCP_SERVERS = dumps(
    {
        "type": "cf_agent_mcp_servers",
        "mcp": {"prompts": [], "resources": [], "servers": {}, "tools": []},
    }
)
_CHAT_CLEAR = dumps({"type": "cf_agent_chat_clear"})


def identity(name: str, agent: str, *, state_follows: bool) -> str:
    """S1: who this is. `state_follows` says that a state frame comes next."""
    return _frame("cf_agent_identity", name=name, agent=agent, stateFollows=state_follows or None)


def state(value: Any) -> str:
    """S2: the whole state; null is a value."""
    return dumps({"type": "cf_agent_state", "state": value})


def state_error(text: str) -> str:
    """S3: a state write was refused."""
    return _frame("cf_agent_state_error", error=text)


def mcp_servers() -> str:
    """S4 of an agent without MCP servers."""
    return _NO_MCP_SERVERS


def chat_messages(
    blocks: Sequence[bytes], messages: Sequence[bytes], *, connect: bool = False
) -> Frame:
    """S6: the transcript, from JSON texts of its messages. `connect`: sent on connect.

    `blocks` are joined messages with a comma at the end; if there are any, `messages` is not empty.
    """
    end = b'],"connect":true}' if connect else b"]}"
    pieces = [b'{"type":"cf_agent_chat_messages","messages":[', *blocks, b",".join(messages), end]
    # Joined only when it is short: a transcript of megabytes is shared by all tabs in pieces.
    return LongText(pieces) if blocks else b"".join(pieces).decode()


def chat_tail(after: str | None, messages: Sequence[bytes]) -> str:
    """S6 in the short form: what follows the message `after`; null is the top of the list."""
    begin = f'{{"type":"cf_agent_chat_messages","after":{dumps(after)},"messages":['
    return begin + b",".join(messages).decode() + "]}"


def message_updated(encoded_message: str) -> str:
    """S8: a tool part of one message has changed, from the JSON text of the whole message."""
    return '{"type":"cf_agent_message_updated","message":' + encoded_message + "}"


def chunk_frame_maker(request_id: str, *, continuation: bool) -> ChunkFrame:
    """S7 for the live chunks of one stream."""
    # Once per stream: for a chunk only its body and its number are left to write.
    prefix = f'{_RESPONSE}{dumps(request_id)},"body":'
    middle = ',"done":false' + (',"continuation":true' if continuation else "") + ',"seq":'

    def chunk_frame(body: str, seq: int) -> str:
        return f"{prefix}{dumps(body)}{middle}{seq}}}"

    return chunk_frame


def replay_chunk(request_id: str, body: str, seq: int, *, continuation: bool) -> str:
    """S7: a chunk sent again to one connection."""
    return _response(request_id, body, continuation=continuation, replay=True, seq=seq)


def replay_complete(request_id: str, *, continuation: bool) -> str:
    """S7: the replay has caught up; live chunks follow."""
    return _response(request_id, "", continuation=continuation, replay=True, replayComplete=True)


def done(
    request_id: str,
    *,
    message_ids: Sequence[str],
    outcome: Outcome,
    continuation: bool,
    replay: bool = False,
) -> str:
    """S7: the stream has ended. Turns no client asked for name no messages (§3.4.4)."""
    return _response(
        request_id,
        "",
        done=True,
        continuation=continuation,
        replay=replay,
        outcome=outcome,
        messageIds=message_ids or None,
    )


def replay_done(request_id: str) -> str:
    """S7: the end of a stream of which nothing is kept any more."""
    return _response(request_id, "", done=True, replay=True)


def error_done(
    request_id: str,
    text: str,
    *,
    message_ids: Sequence[str],
    outcome: Outcome = "error",
    continuation: bool,
) -> str:
    """S7: the stream has ended with an error the user is shown."""
    return _response(
        request_id,
        text,
        done=True,
        error=True,
        continuation=continuation,
        outcome=outcome,
        messageIds=message_ids or None,
    )


def stream_resuming(request_id: str, probe_id: str | None = None) -> str:
    """S10: there is a stream to join."""
    return _frame("cf_agent_stream_resuming", id=request_id, probeId=probe_id)


def stream_resume_none(
    reason: Literal["idle", "continuation-owned"] | None = None, probe_id: str | None = None
) -> str:
    """S11: there is nothing to join."""
    return _frame("cf_agent_stream_resume_none", reason=reason, probeId=probe_id)


def stream_pending(request_id: str | None = None, probe_id: str | None = None) -> str:
    """S12: a turn is accepted and has not begun to stream."""
    return _frame("cf_agent_stream_pending", id=request_id, probeId=probe_id)


def chat_clear() -> str:
    """S9: the conversation was deleted."""
    return _CHAT_CLEAR


def chat_recovering(recovering: bool, request_id: str | None = None) -> str:  # noqa: FBT001
    """S13: a turn is being recovered, or no longer is."""
    return _frame("cf_agent_chat_recovering", recovering=recovering, id=request_id)


def agent_paused(reason: str | None) -> str:
    """Ours: an operator has paused the agent, or it goes on. Clients of others ignore it."""
    return _frame("thinkwell_agent_paused", paused=reason is not None, reason=reason)


def model_waiting(request_id: str, model: str | None) -> str:
    """Ours: a turn waits for a free slot of its model, or no longer. Others' clients ignore it."""
    return _frame("thinkwell_model_waiting", id=request_id, waiting=model is not None, model=model)


def rpc_result(call_id: str, result: Any, *, done: bool = True) -> str:
    """S5: a value of a call; `done` unless more follow."""
    return dumps({"type": "rpc", "id": call_id, "success": True, "result": result, "done": done})


def rpc_error(call_id: str, text: str) -> str:
    """S5: a call failed."""
    return _frame("rpc", id=call_id, success=False, error=text)


def _frame(kind: str, **fields: Any) -> str:
    """A frame without the fields that are None."""
    present = {key: value for key, value in fields.items() if value is not None}
    return dumps({"type": kind, **present})


def _response(request_id: str, body: str, *, done: bool = False, **fields: Any) -> str:
    """S7 without the fields that are None or False."""
    present = {key: v for key, v in fields.items() if v is not None and v is not False}
    return dumps(
        {
            "type": "cf_agent_use_chat_response",
            "id": request_id,
            "body": body,
            "done": done,
            **present,
        }
    )
