"""How this turn runs: what `before_turn` chose, else what the agent's settings say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from thinkwell.hooks.answers import Transform, TurnConfig
from thinkwell.hooks.reading import as_list
from thinkwell.hooks.time_limits import USUAL, TimeLimits, limits_of
from thinkwell.tools.output import Output
from thinkwell.tools.repair import RepairToolCall
from thinkwell.tools.stopping import StopCondition
from thinkwell.tools.tool import Tool

if TYPE_CHECKING:
    from thinkwell.turn.ask.run_options import Options
    from thinkwell.turn.parts import AgentFace

DEFAULT_RETRIES = 2


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one turn."""

    max_steps: int = 10
    on_max_steps: Literal["stop", "error", "answer"] = "stop"
    stop_when: tuple[StopCondition, ...] = ()
    send_reasoning: bool = True
    output: Output[Any] | None = None
    output_fixed: bool = False
    """Whoever called `run` asked for it: no hook of a step changes its type."""
    max_retries: int = DEFAULT_RETRIES
    limits: TimeLimits = USUAL
    stall_timeout: float = 0.0
    repair_tool_call: RepairToolCall | None = None
    transforms: tuple[Transform, ...] = ()
    telemetry: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    tools: Mapping[str, Tool] = MappingProxyType({})
    """All its static tools; those of scopes join in every step."""
    authorization: Any = True
    """What `authorize_turn` said."""


def settings_of(agent: AgentFace, config: TurnConfig, options: Options) -> TurnSettings:
    """What holds for this turn.

    `before_turn` has the last word about what `run` was given, but for the output: whoever asked
    reads that as the type it named.
    """
    return TurnSettings(
        max_steps=_either(config.max_steps, _either(options.max_steps, agent.max_steps)),
        on_max_steps=config.on_max_steps or agent.on_max_steps,
        stop_when=tuple(as_list(config.stop_when)),
        send_reasoning=_either(config.send_reasoning, agent.send_reasoning),
        output=options.output or config.output,
        output_fixed=options.output is not None,
        max_retries=_either(config.max_retries, agent.max_retries),
        limits=_limits(agent, config),
        stall_timeout=_either(config.chat_stream_stall_timeout, agent.chat_stream_stall_timeout),
        repair_tool_call=config.repair_tool_call,
        transforms=tuple(as_list(config.transforms)),
        telemetry=config.telemetry or {},
        tool_execution=config.tool_execution or agent.tool_execution,
    )


def _limits(agent: AgentFace, config: TurnConfig) -> TimeLimits:
    changed = agent.time_limits or config.timeout is not None
    return limits_of(agent.time_limits, config.timeout) if changed else USUAL


def _either(chosen: Any, default: Any) -> Any:
    return default if chosen is None else chosen
