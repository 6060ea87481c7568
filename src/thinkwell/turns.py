"""What comes of a turn: its result, how it stands, what its readers are given, and its past."""

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
from thinkwell.host.app_turns import AppTurns
from thinkwell.host.forking import Fork
from thinkwell.host.replaying import Replay, replay_case
from thinkwell.journal.submission import Submission
from thinkwell.journal.tail import Chunks, Ended, Started, TailEvent, Updated
from thinkwell.journal.turns import EndStatus, StopReason, Trigger, TurnStatus
from thinkwell.turn.end.ending import TurnResult
from thinkwell.turn.info import TurnInfo
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.differences import Difference
from thinkwell.turn.travel.story import (
    HookDecision,
    ModelUse,
    StoryStep,
    ToolUse,
    TurnStory,
)

__all__ = [
    "AgentEvent",
    "AgentResponse",
    "AppTurns",
    "Case",
    "ChatAbort",
    "ChatCallback",
    "ChatDone",
    "ChatError",
    "ChatOutcome",
    "ChatStart",
    "Chunks",
    "ContentDelta",
    "ContentEnd",
    "Difference",
    "EndStatus",
    "Ended",
    "Fork",
    "HistoryView",
    "HookDecision",
    "ModelUse",
    "ReasoningDelta",
    "ReasoningEnd",
    "Replay",
    "Started",
    "StopReason",
    "StoryStep",
    "Submission",
    "TailEvent",
    "ToolCallDelta",
    "ToolCallError",
    "ToolCallResult",
    "ToolCallStart",
    "ToolUse",
    "Trigger",
    "TurnDetails",
    "TurnInfo",
    "TurnResult",
    "TurnStatus",
    "TurnStory",
    "Updated",
    "replay_case",
]
