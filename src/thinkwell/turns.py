"""What comes of a turn: its result, how it stands, and what its readers are given."""

from thinkwell.agent.agent_events import (
    AgentEvent,
    AgentResponse,
    ChatAbort,
    ChatDone,
    ChatError,
    ChatStart,
    ContentDelta,
    ContentEnd,
    ReasoningDelta,
    ReasoningEnd,
    ToolCallDelta,
    ToolCallError,
    ToolCallResult,
    ToolCallStart,
)
from thinkwell.agent.callbacks import ChatCallback, ChatOutcome
from thinkwell.agent.history_view import HistoryView
from thinkwell.features.turn_details import TurnDetails
from thinkwell.journal.submission import Submission
from thinkwell.journal.tail import Chunks, Ended, Started, TailEvent, Updated
from thinkwell.journal.turns import EndStatus, StopReason, Trigger, TurnStatus
from thinkwell.turn.end.ending import TurnResult
from thinkwell.turn.info import TurnInfo

__all__ = [
    "AgentEvent",
    "AgentResponse",
    "ChatAbort",
    "ChatCallback",
    "ChatDone",
    "ChatError",
    "ChatOutcome",
    "ChatStart",
    "Chunks",
    "ContentDelta",
    "ContentEnd",
    "EndStatus",
    "Ended",
    "HistoryView",
    "ReasoningDelta",
    "ReasoningEnd",
    "Started",
    "StopReason",
    "Submission",
    "TailEvent",
    "ToolCallDelta",
    "ToolCallError",
    "ToolCallResult",
    "ToolCallStart",
    "Trigger",
    "TurnDetails",
    "TurnInfo",
    "TurnResult",
    "TurnStatus",
    "Updated",
]
