"""A client's chat request becomes a turn, over whatever it came (spec/01 §6, §8.1)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, cast

import msgspec

from thinkwell.agent.intake import Plan, Policy
from thinkwell.agent.turns import Turns
from thinkwell.core.errors import MessageTooLargeError, ToolDefinitionError
from thinkwell.core.principal import Principal
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.contexts import ChatErrorContext
from thinkwell.journal.turns import Trigger
from thinkwell.live.watchers import Transcript
from thinkwell.messages.limits import enforce_row_size_limit
from thinkwell.messages.message import UIMessage
from thinkwell.messages.sanitize import strip_reserved_metadata
from thinkwell.messages.validate import ROLES, check_message
from thinkwell.tools.tool import client_tool
from thinkwell.turn.admission import Admission, TurnRequest
from thinkwell.turn.ticket import Ticket
from thinkwell.wire.frames import ChatRequest

log = logging.getLogger("thinkwell.agent")

CHANNEL = "web"
"""Stamped on user messages that come from a client."""


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends a chat request."""

    trigger: Trigger
    connection: str | None = None
    """The connection that asks; it needs no transcript back."""
    principal: Principal | None = None
    read_only: bool = False
    shown: Transcript | None = None
    """What the connection was told to show last, beside its connect sequence."""


async def accept_chat(
    turns: Turns, policy: Policy, asked: ChatRequest, asker: Asker
) -> tuple[Admission, Ticket | None] | None:
    """Accept the turn a client asks for; None if the policy drops it.

    Raises `ValueError` for messages that are none; nothing is stored then.
    """
    messages = _read_messages(asked.messages, turns.parts.session.history.head_path.ids)
    async with turns.intake:  # two tabs at once: the second sees the first in line
        regenerate = asked.trigger == "regenerate-message" and messages
        plan = Plan() if regenerate else turns.plan(policy)
        if plan.drop:
            return None
        request = TurnRequest(
            trigger=asker.trigger,
            request_id=asked.id,
            messages=messages,
            branch_from=messages[-1]["id"] if regenerate else None,
            body=asked.body or None,
            client_tools=read_client_tools(asked.client_tools),
            message_ids=_trailing_user_ids(messages),
            supersedes=tuple(ticket.record for ticket in plan.supersedes),
            not_before=plan.not_before,
            steer=plan.steer,
            principal=asker.principal,
            read_only=asker.read_only,
        )
        crossed = not regenerate and _crossed(messages, asker.shown)
        return await turns.ask(request, origin=asker.connection, crossed=crossed)


async def explain_refusal(turns: Turns, request_id: str | None, reason: str, asker: Asker) -> str:
    """What the sender of a request that cannot run is told, as `on_chat_error` decides (AC87)."""
    parts = turns.parts
    error = ValueError(reason)
    context = ChatErrorContext(
        request_id=request_id or "",
        trigger=asker.trigger,
        continuation=False,
        agent=parts.agent_ref,
        abort_signal=AbortSignal(),
        principal=asker.principal,
        error=error,
        stage="parse",
        messages_persisted=False,
        partial=None,
        attempt=0,
    )
    return str(await parts.hooks.on_chat_error(error, context))


def read_client_tools(schemas: list[Any] | None) -> tuple[dict[str, Any], ...] | None:
    """The client's tools by name, the last of a name winning; what is no tool is left out."""
    if schemas is None:
        return None
    found: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        if isinstance(schema, dict):
            fields = cast("dict[str, Any]", schema)
            try:
                made = client_tool(
                    fields.get("name"), fields.get("description"), fields.get("parameters")
                )
            except ToolDefinitionError as error:
                log.warning("a client tool was left out: %.200s", error)
                continue
            found[made.name] = fields
    return tuple(found.values())


def _crossed(messages: tuple[UIMessage, ...], shown: Transcript | None) -> bool:
    """Whether a client asked before it had seen the transcript it was sent last.

    Then its question is gone from its list, or stands in the wrong place. Its own list tells: the
    last message of the transcript is missing there, or was still growing.
    """
    if shown is None:
        return False
    last = next((message for message in messages if message["id"] == shown.last), None)
    return last is None or any(part.get("state") == "streaming" for part in last["parts"])


def _read_messages(sent: list[Any], stored: Collection[str]) -> tuple[UIMessage, ...]:
    """The client's list. Of what is stored only the id counts; the last may be an edited one."""
    last = len(sent) - 1
    return tuple(
        message if index < last and _is_stored(message, stored) else _incoming(message)
        for index, message in enumerate(sent)
    )


def _is_stored(message: Any, stored: Collection[str]) -> bool:
    if not isinstance(message, dict):
        return False
    fields = cast("dict[str, Any]", message)
    message_id, parts = fields.get("id"), fields.get("parts")
    if not isinstance(message_id, str) or message_id not in stored or not isinstance(parts, list):
        return False
    known_shape = all(isinstance(part, dict) for part in cast("list[Any]", parts))
    return known_shape and fields.get("role") in ROLES


def _trailing_user_ids(messages: tuple[UIMessage, ...]) -> tuple[str, ...]:
    """The run of user messages at the end: what the client wants answered (spec/01 §3.4.4)."""
    ids: list[str] = []
    for message in reversed(messages):
        if message["role"] != "user":
            break
        ids.append(message["id"])
    return tuple(reversed(ids))


def _incoming(value: Any) -> UIMessage:
    message = strip_reserved_metadata(check_message(value))
    if message["role"] != "user":
        return message
    try:
        enforce_row_size_limit(message)
    except MessageTooLargeError as error:
        raise ValueError(str(error)) from error
    metadata = {**message.get("metadata", {}), "channel": CHANNEL}
    return {**message, "metadata": metadata}
