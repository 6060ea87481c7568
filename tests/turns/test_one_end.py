"""Whatever hooks, tools, models and clients do, a turn ends once (DESIGN §1, spec/02 §4, AC72)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.turns.chaos import ANSWERS, BEHAVIOURS, BY_THE_TEST, Chaos, ChaosModel, steps
from tests.turns.support import Client, Stage, folded, running, untyped
from thinkwell.hooks.registry import EVENTS
from thinkwell.messages.message import is_settled, tool_parts, visible_message
from thinkwell.messages.sanitize import sanitize_message
from thinkwell.turn.end.settle import has_content


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One turn and what goes wrong in it."""

    script: list[list[Any]]
    hooks: list[tuple[str, str]]
    entry: str
    stop_after: int | None
    suspends: bool
    strict: bool


plans = st.builds(
    Plan,
    script=steps,
    hooks=st.lists(
        st.tuples(st.sampled_from(EVENTS), st.sampled_from([*sorted(BEHAVIOURS), *BY_THE_TEST])),
        max_size=4,
    ),
    strict=st.booleans(),
    entry=st.sampled_from(["socket", "run", "submit", "stream"]),
    stop_after=st.none() | st.integers(0, 40),
    suspends=st.booleans(),
)


@settings(max_examples=150, derandomize=True)
@given(plan=plans)
def test_every_turn_ends_exactly_once_and_the_agent_goes_on(plan: Plan):
    asyncio.run(check(plan))


async def check(plan: Plan) -> None:
    async with asyncio.timeout(20):
        async with running(Chaos, suspends=plan.suspends) as stage:
            stage.agent.chaos = ChaosModel(plan.script)
            prepare(stage, strict=plan.strict)
            client = await stage.connect()
            misbehave = [add(stage, event, how) for event, how in plan.hooks]
            told = count(stage)
            request_id = await run_plan(plan, stage, client)
            await stage.log.until("told")
            for dispose in misbehave:
                dispose()
            stage.agent.chaos.behave()
            after = await stage.agent.run("and now?")
            assert after.status == "completed"
            await check_row_and_hooks(stage, request_id, told)
            await check_client(stage, client, request_id)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks were left behind: {left}"


def prepare(stage: Stage[Chaos], *, strict: bool) -> None:
    """No waiting between retries, and maybe strict hooks."""
    turns = untyped(stage)._turns  # the one place where time can be replaced
    turns.parts.hooks.strict = strict
    turns.wire(msgspec.structs.replace(turns.parts, sleep=lambda _: asyncio.sleep(0)))


def add(stage: Stage[Chaos], event: str, how: str) -> Any:
    """Register a hook that misbehaves."""
    agent = untyped(stage)
    if how == "answers":
        return agent.add_hook(event, lambda *_: ANSWERS.get(event))
    if how == "disposes of itself":
        dispose = agent.add_hook(event, lambda *_: dispose())
        return dispose
    if how == "waits at a gate":
        return agent.add_hook(event, at_gate)
    behaviour = BEHAVIOURS[how]
    return agent.add_hook(event, lambda *arguments: behaviour(arguments[-1]))


async def at_gate(*_: Any) -> None:
    """Wait until something else has run."""
    gate = asyncio.Event()
    asyncio.get_running_loop().call_soon(gate.set)
    await gate.wait()


def count(stage: Stage[Chaos]) -> dict[str, list[Any]]:
    """Well-behaved hooks that remember the ends they were told."""
    told: dict[str, list[Any]] = {"errors": [], "responses": [], "dones": [], "aborts": []}

    def remember(ctx: Any) -> None:
        told["responses"].append(ctx)
        stage.log.append("told")

    stage.agent.add_hook("on_chat_error", lambda _, ctx: told["errors"].append(ctx))
    stage.agent.add_hook("on_chat_done", told["dones"].append)
    stage.agent.add_hook("on_chat_abort", told["aborts"].append)
    stage.agent.add_hook("on_chat_response", remember)
    return told


async def run_plan(plan: Plan, stage: Stage[Chaos], client: Client) -> str:
    """Start the turn, maybe stop it after some loop iterations; returns its request id."""
    asking = asyncio.ensure_future(enter(plan.entry, stage, client))
    if plan.stop_after is not None:
        for _ in range(plan.stop_after):
            await asyncio.sleep(0)
        await stage.agent.cancel_chat()
    await asking
    await stage.log.until("told")
    return stage.fields("chat:turn:start")[0]["request_id"]


async def enter(entry: str, stage: Stage[Chaos], client: Client) -> None:
    """One of the ways in."""
    match entry:
        case "socket":
            await client.ask("hi")
            await client.until_end()
        case "run":
            result = await stage.agent.run("hi")
            assert result.status in ("completed", "error", "aborted")
        case "submit":
            await stage.agent.submit("hi")
        case _:
            streamed = [chunk async for chunk in stage.agent.stream("hi")]
            # An error or abort chunk at the end is the reader's alone; sockets get an end frame.
            told = [chunk for chunk in streamed if chunk["type"] not in ("error", "abort")]
            assert told == client.chunks(stage.fields("chat:turn:start")[0]["request_id"])


async def check_row_and_hooks(
    stage: Stage[Chaos], request_id: str, told: dict[str, list[Any]]
) -> None:
    turn = await stage.agent.get_turn(request_id)
    assert turn.status in ("completed", "error", "aborted")
    assert turn.settled_at is not None
    mine = [ctx for ctx in told["responses"] if ctx.request_id == request_id]
    assert [ctx.status for ctx in mine] == [turn.status]
    ends = {"dones": "completed", "aborts": "aborted", "errors": "error"}
    for kind, status in ends.items():
        heard = [ctx for ctx in told[kind] if ctx.request_id == request_id]
        assert len(heard) == (1 if turn.status == status else 0), kind
    for event in ("chat:turn:start", "chat:turn:finish"):
        ids = [fields["request_id"] for fields in stage.fields(event)]
        assert ids.count(request_id) == 1
    assert stage.log.count("accepted") == 2


async def check_client(stage: Stage[Chaos], client: Client, request_id: str) -> None:
    chunks = client.chunks(request_id)
    turn = await stage.agent.get_turn(request_id)
    ends = client.ends(request_id)
    if chunks or turn.trigger == "ws-chat" or turn.status == "error":
        assert [end.get("error", False) for end in ends] == [turn.status == "error"]
    seen = sanitize_message(folded(chunks))  # storage normalises inputs (spec/01 §7.6)
    stored = [m for m in await stage.messages() if m["id"] == turn.message_id]
    shown = [visible_message(message) for message in stored]
    assert [m["parts"] for m in shown if has_content(m)] == (
        [seen["parts"]] if has_content(seen) else []
    )
    for message in stored:
        assert all(is_settled(part) for part in tool_parts(message))
