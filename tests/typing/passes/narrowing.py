"""What a type checker knows after a look at `success`, `type` or the class."""

from __future__ import annotations

from typing import Any, Literal, assert_never, assert_type

from thinkwell import Submission, Think, TurnInfo, TurnResult
from thinkwell.features import Feature
from thinkwell.hooks import CallFailed, CallSucceeded, ChatResponse, ToolResultContext
from thinkwell.jobs import Job
from thinkwell.messages import UIMessage
from thinkwell.turns import (
    AgentEvent,
    ChatDone,
    Chunks,
    ContentDelta,
    Ended,
    EndStatus,
    Started,
    StopReason,
    TailEvent,
    ToolCallResult,
    Trigger,
    TurnStatus,
    Updated,
)


class Auditor(Think):
    model = "demo"

    def after_tool_call(self, ctx: ToolResultContext) -> None:
        assert_type(ctx.tool_name, str)
        # `if ctx.success:` is enough for mypy; pyright looks at a comparison.
        if ctx.success is True:
            assert_type(ctx, CallSucceeded)
            assert_type(ctx.error, None)
            assert_type(ctx.output, Any)
        else:
            assert_type(ctx, CallFailed)
            assert_type(ctx.output, None)
            raise ctx.error

    async def raised(self, ctx: ToolResultContext) -> Any:
        match ctx:
            case CallSucceeded(output=output):
                return output
            case CallFailed(error=error):
                raise error

    async def told(self, ctx: ToolResultContext) -> str:
        return str(ctx.output) if ctx.error is None else type(ctx.error).__name__

    def on_chat_response(self, ctx: ChatResponse) -> None:
        assert_type(ctx.status, Literal["completed", "error", "aborted"])
        assert_type(ctx.stop_reason, StopReason)
        assert_type(ctx.trigger, Trigger)


async def events(agent: Auditor) -> None:
    async for event in agent.chat_stream("Hi"):
        assert_type(event, AgentEvent)
        if event.type == "content_delta":
            assert_type(event, ContentDelta)
            print(event.delta)
        elif event.type == "tool_call_result":
            assert_type(event, ToolCallResult)
            print(event.call.name, event.result)
        match event:
            case ContentDelta(delta=delta):
                assert_type(delta, str)
            case ChatDone(response=response):
                assert_type(response.content, str | None)
            case _:
                print(event.type)


def tail(event: TailEvent) -> str:
    match event:
        case Started(record=record, written=written):
            return f"{record.request_id} {written}"
        case Chunks(bodies=bodies):
            return "".join(bodies)
        case Updated(message=message):
            assert_type(message, UIMessage)
            return message["id"]
        case Ended(record=record):
            return record.status
        case _:
            assert_never(event)


def ended(status: EndStatus) -> bool:
    match status:
        case "completed":
            return True
        case "error" | "aborted" | "skipped":
            return False
        case _:
            assert_never(status)


def stands(result: TurnResult, info: TurnInfo, submission: Submission, job: Job) -> bool:
    assert_type(result.stop_reason, StopReason | None)
    assert_type(info.status, TurnStatus)
    assert_type(info.trigger, Trigger)
    assert_type(info.stop_reason, StopReason | None)
    assert_type(submission.status, TurnStatus)
    assert_type(job.status, Literal["waiting", "running", "done", "failed", "cancelled"])
    return ended(result.status)


class Follower(Feature):
    name = "follower"

    async def follow(self, request_id: str) -> str:
        return "".join([tail(event) async for event in self.kit.tail(request_id)])
