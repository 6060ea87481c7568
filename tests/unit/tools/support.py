"""The context of a tool call outside of any turn."""

from thinkwell.core.signal import AbortController
from thinkwell.tools import ToolContext

CTX = ToolContext(
    tool_call_id="call-1",
    tool_name="x",
    messages=(),
    abort_signal=AbortController().signal,
    step_number=0,
    request_id="req-1",
    agent=None,
    idempotency_key="key-1",
)
