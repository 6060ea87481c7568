"""How this turn runs: what `before_turn` chose, else what the agent's settings say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from thinkwell.hooks.answers import Transform, TurnConfig
from thinkwell.hooks.reading import as_list
from thinkwell.tools.output import Output
from thinkwell.tools.repair import RepairToolCall
from thinkwell.tools.stopping import StopCondition
from thinkwell.turn.parts import AgentFace
from thinkwell.turn.run.limits import TimeLimits, limits_of

DEFAULT_RETRIES = 2


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one turn."""

    max_steps: int = 10
    on_max_steps: Literal["stop", "error", "answer"] = "stop"
    stop_when: tuple[StopCondition, ...] = ()
    send_reasoning: bool = True
    output: Output[Any] | None = None
    max_retries: int = DEFAULT_RETRIES
    limits: TimeLimits = TimeLimits()
    stall_timeout: float = 0.0
    repair_tool_call: RepairToolCall | None = None
    transforms: tuple[Transform, ...] = ()
    telemetry: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    tool_execution: Literal["parallel", "sequential"] = "parallel"


def settings_of(agent: AgentFace, config: TurnConfig) -> TurnSettings:
    """What holds for this turn."""
    return TurnSettings(
        max_steps=_either(config.max_steps, agent.max_steps),
        on_max_steps=config.on_max_steps or agent.on_max_steps,
        stop_when=tuple(as_list(config.stop_when)),
        send_reasoning=_either(config.send_reasoning, agent.send_reasoning),
        output=config.output,
        max_retries=_either(config.max_retries, agent.max_retries),
        limits=limits_of(agent.time_limits, config.timeout),
        stall_timeout=_either(config.stall_timeout, agent.chat_stream_stall_timeout),
        repair_tool_call=config.repair_tool_call,
        transforms=tuple(as_list(config.transforms)),
        telemetry=config.telemetry or {},
        tool_execution=config.tool_execution or agent.tool_execution,
    )


def _either(chosen: Any, default: Any) -> Any:
    return default if chosen is None else chosen
