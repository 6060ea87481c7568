"""An agent made of a record alone: its prompt, its tools by their schemas, no code of the app.

For a replay where the app is not at hand, or where only the model is to be another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from thinkwell.agent.think import Think
from thinkwell.core.errors import ToolError
from thinkwell.hooks.answers import Sampling, StepConfig, TurnConfig
from thinkwell.models.base import ModelRequest
from thinkwell.tools.tool import Tool
from thinkwell.turn.recorded_requests import RecordedRequest, requests_in
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.script import read_script

_MANY = 1000
"""Steps that may follow each other: the record says when the turn ended."""


async def bare_agent(case: Case, *, live: bool) -> type[Think]:
    """A class that sends what was sent; with a `live` model, what that is sent grows by itself."""
    found = await requests_in(case.journal, case.turn.message_id, case)
    requests = [each.request for each in found if isinstance(each, RecordedRequest)]
    script, declared = read_script(case.journal), {t["name"] for t in case.turn.client_tools}
    approvals = {call_id for call_id in script.told if script.approval_id(call_id) is not None}
    effects = {row.tool_name: row.effect for row in case.calls}
    tools = {
        spec.name: _stand_in(spec.name, spec.description, spec.input_schema, effects)
        for request in requests
        for spec in request.tools
        if spec.name not in declared
    }

    # A call that was tried again is one step: no hook is asked between.
    fresh = [
        each.request
        for place, each in enumerate(found)
        if isinstance(each, RecordedRequest)
        and not (place and script.calls[place - 1].end == "retried")
    ]
    upcoming = iter([_as_sent(request) for request in fresh])
    named = next((f"{each.provider}:{each.model}" for each in found), "recorded:none")

    class Recorded(Think, name=case.turn.agent_id.partition("/")[0]):
        model = named
        max_steps = _MANY
        chat_stream_stall_timeout = 0.0

        def get_tools(self) -> Mapping[str, Tool]:
            return {
                name: _asking(tool, approvals) if approvals else tool
                for name, tool in tools.items()
            }

        def before_turn(self, ctx: Any) -> TurnConfig | None:  # noqa: ARG002 - hooks have it
            if not requests:
                return None
            steps = max(case.turn.steps, 1) if not live else _MANY
            return TurnConfig(system=requests[0].system, max_steps=steps, max_retries=_MANY)

        def before_step(self, ctx: Any) -> StepConfig | None:
            if live:
                return _as_sent(requests[0]) if requests and ctx.step_number == 0 else None
            return next(upcoming, None)

    return Recorded


def _as_sent(request: ModelRequest) -> StepConfig:
    """The settings of a step that make the same request."""
    sampling = {name: getattr(request, name) for name in Sampling.__struct_fields__}
    return StepConfig(
        **{name: value for name, value in sampling.items() if value},
        system=request.system,
        messages=request.messages,
        active_tools=[tool.name for tool in request.tools],
        tool_choice=request.tool_choice,
    )


def _stand_in(
    name: str, description: str, schema: Mapping[str, Any], effects: Mapping[str, str]
) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema=dict(schema),
        execute=_never,
        validate=lambda given: given,
        effect=cast("Any", effects.get(name, "once")),
    )


def _asking(tool: Tool, approvals: set[str]) -> Tool:
    from dataclasses import replace

    async def asked(_: Any, ctx: Any) -> bool:
        return ctx.tool_call_id in approvals

    return replace(tool, needs_approval=asked)


async def _never(_given: Any, _ctx: Any) -> Any:
    raise ToolError("This tool is known only by its schema: there is no code to run.")
