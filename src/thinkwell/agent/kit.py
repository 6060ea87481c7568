"""The `Kit` of a feature: the verbs of an agent and of its clients, for one feature (DESIGN §3).

Only delegates: turns are asked for and read as everybody asks for them and reads them. What a
client does goes through `turn/ask`, which asks `authorize` and keeps to the limits.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Unpack, cast

import msgspec

from thinkwell.core.authority import Action, Subject
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import MessageTooLargeError, SubmissionConflictError, TurnError
from thinkwell.core.limits import payer_of
from thinkwell.core.signal import Disposer
from thinkwell.hooks.feature import Client, JobOptions
from thinkwell.journal.costs import CostBy, CostLine, costs_by
from thinkwell.journal.jobs import Job
from thinkwell.journal.ledger import call_times
from thinkwell.journal.storage import Storage
from thinkwell.journal.submission import OF_TASKS, Submission
from thinkwell.journal.tail import TailEvent
from thinkwell.journal.turns import Trigger, TurnRecord, turns_of_message
from thinkwell.messages.message import UIMessage
from thinkwell.models.resolve import ModelPool
from thinkwell.session.changes import Change, carry_out
from thinkwell.session.search.index import SearchIndex
from thinkwell.session.session import Session
from thinkwell.store.base import Transaction
from thinkwell.turn.ask.admission import (
    MOST_NEW,
    Admission,
    MessageInput,
    TurnRequest,
    as_messages,
    from_client,
    read_input,
)
from thinkwell.turn.ask.answers import approval_answer, result_answer
from thinkwell.turn.ask.approval_desk import TurnApprovals
from thinkwell.turn.ask.authority import demand
from thinkwell.turn.ask.budget_desk import TurnBudgets
from thinkwell.turn.ask.chat_request import (
    Asker,
    accept_chat,
    ask_as_client,
    demand_cancel,
    demand_send,
    explain_refusal,
)
from thinkwell.turn.ask.client_answers import answer_as_client
from thinkwell.turn.ask.copied_reply import go_on
from thinkwell.turn.ask.forgery import report_copies
from thinkwell.turn.ask.policy import read_policy
from thinkwell.turn.turns import Turns
from thinkwell.wire.frames import ChatRequest
from thinkwell.wire.http_body import Refusal, check_sizes

if TYPE_CHECKING:
    from thinkwell.agent.agent import Agent

BUSY = "The agent is busy and takes no other message now. Try again when it has answered."


class Around(Protocol):
    """What a kit needs of what all agents of a host share."""

    bus: EventBus
    clock: Clock
    models: ModelPool
    search: SearchIndex
    agents: Callable[[type | str, str], Any]


class AgentKit:
    """What one feature of one agent gets. See `Kit`."""

    def __init__(
        self, name: str, agent: Agent, turns: Turns | None, *, storage: Storage, shared: Around
    ) -> None:
        self._name = name
        self.agent = agent
        self.storage = storage
        self.events = shared.bus
        self.clock = shared.clock
        self.models = shared.models
        self.search_index = shared.search
        self._agents = shared.agents
        self._turns = turns

    @property
    def session(self) -> Session:
        """The message tree."""
        return self._chat.parts.session

    @property
    def approvals(self) -> TurnApprovals:
        """Calls that wait for somebody."""
        return TurnApprovals(self._chat)

    @property
    def budgets(self) -> TurnBudgets:
        """How budgets stand."""
        return TurnBudgets(self._chat)

    def agents(self, cls: type | str, name: str = "default") -> Any:
        """A stub of another agent."""
        return self._agents(cls, name)

    def broadcast(self, message: Any, *, without: Collection[str] = ()) -> None:
        """Send something to all who are connected."""
        self.agent.broadcast(message, without=without)

    def fire(self, event: str, context: msgspec.Struct) -> None:
        """Call the hooks of an event."""
        turns = self._chat
        turns.tasks.spawn(turns.parts.hooks.observe_end(event, context), name=event)

    # Turns

    async def admit(
        self,
        input: MessageInput,
        *,
        by: Client | None = None,
        request_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Submission:
        """Accept a turn."""
        if by is not None and idempotency_key is not None and idempotency_key.startswith(OF_TASKS):
            raise SubmissionConflictError(
                f"The idempotency key {idempotency_key!r} belongs to a scheduled task. Use a key "
                f"that does not begin with {OF_TASKS!r}."
            )
        request = TurnRequest(
            trigger="submission",
            messages=read_input(input) if by is None else _of_client(input),
            new_ids=isinstance(input, str),
            request_id=request_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
        )
        if by is None:
            admission, _ = await self._chat.ask(request)
        else:
            if isinstance(input, list):  # an answer in it is a copy, and may be a forged one
                await report_copies(self._chat, cast("list[Any]", input), by.principal)
            admission = await self._admit_for(request, _asker(by, "submission"))
        return _submission(admission)

    async def _admit_for(self, request: TurnRequest, asker: Asker) -> Admission:
        newest = request.messages[-1]["id"] if request.messages else None
        await demand_send(self._chat, asker, request.request_id, newest)
        request = msgspec.structs.replace(
            request, principal=asker.principal, read_only=asker.read_only
        )
        admission, _ = await ask_as_client(self._chat, request, asker)
        return admission

    def tail(
        self, request_id: str, start: int = 0, *, silence: float | None = None
    ) -> AsyncGenerator[TailEvent]:
        """Follow a turn."""
        return self._chat.tail(request_id, start, silence=silence)

    async def wait(self, request_id: str) -> TurnRecord:
        """The row of a turn that is over."""
        return await self._chat.until_over(request_id)

    async def find(self, request_id: str) -> TurnRecord | None:
        """The row of a turn."""
        return await self._chat.find(request_id)

    def line(self) -> Sequence[TurnRecord]:
        """The turn that runs and those that wait."""
        return [handle.record for handle in self._chat.handles()]

    async def turns_of(self, message_id: str) -> Sequence[TurnRecord]:
        """The turns that wrote an answer."""
        parts = self._chat.parts
        return await turns_of_message(parts.store, parts.owner.agent_id, message_id)

    async def call_times(self, request_ids: Sequence[str]) -> Mapping[str, float]:
        """How long tool calls took."""
        parts = self._chat.parts
        return await call_times(parts.store, parts.owner.agent_id, request_ids)

    async def costs_by(self, by: CostBy, *, since: float) -> list[CostLine]:
        """What turns have cost."""
        parts = self._chat.parts
        return await costs_by(parts.store, by, agent=parts.owner.agent_id, since=since)

    async def rearrange(self, *changes: Change, call: str) -> None:
        """Change the message tree while nothing runs."""
        session = self._chat.parts.session

        async def change(tx: Transaction) -> None:
            for each in changes:
                await carry_out(tx, session, each)

        await self._chat.change_idle(change, call)

    # Jobs

    async def enqueue(self, job: str, payload: Any = None, **options: Unpack[JobOptions]) -> Job:
        """Have one of this feature's jobs done."""
        return await self.agent.jobs.enqueue(f"{self._name}.{job}", payload, **options)

    def keep_awake(self) -> Disposer:
        """The agent does not go to sleep until this is disposed of."""
        return self.agent.jobs.desk.keep_awake()

    # What a client does

    async def send(self, asked: ChatRequest, by: Client) -> Submission | None:
        """A chat request with the client's whole list."""
        asker = _asker(by, "http-chat")
        try:
            return await self._send(asked, asker)
        except ValueError as error:
            status = 413 if isinstance(error.__cause__, MessageTooLargeError) else 400
            text = await explain_refusal(self._chat, asked.id, str(error), asker)
            raise Refusal(status, text) from error

    async def _send(self, asked: ChatRequest, asker: Asker) -> Submission | None:
        turns, copy = self._chat, asked.copied_answer()
        if copy is not None:
            went_on = await go_on(turns, copy, asked, asker)
            if went_on.handle is None:
                return None
            return Submission.of(went_on.handle.record)
        policy = read_policy(turns.parts.agent.message_concurrency)
        accepted = await accept_chat(turns, policy, asked, asker)
        if accepted is None:
            raise Refusal(409, BUSY)
        return _submission(accepted[0])

    async def answer(self, tool_call_id: str, by: Client, **answer: Any) -> bool:
        """A tool's result, or a decision."""
        make = approval_answer if "approved" in answer else result_answer
        given = make(tool_call_id, **answer)
        return await answer_as_client(self._chat, given, _asker(by, "http-chat"))

    async def cancel(
        self, request_id: str, by: Client, reason: str = "stopped by the user"
    ) -> bool:
        """Stop a turn."""
        await demand_cancel(self._chat, request_id, _asker(by, "http-chat"))
        return await self._chat.cancel(request_id, reason)

    async def transcript(self) -> bytes:
        """What every client should show."""
        shown = await self._chat.transcript()
        return b"".join([b"[", *shown.blocks, b",".join(shown.messages), b"]"])

    async def authorize(self, action: Action, by: Client, subject: Subject | None = None) -> None:
        """Whether a client may do this."""
        about = msgspec.structs.replace(subject or Subject(), read_only=by.readonly)
        await demand(self.agent, action, by.principal, about)

    @property
    def _chat(self) -> Turns:
        if self._turns is None:
            raise TurnError(f"{type(self.agent).__name__} has no turns: it does not chat.")
        return self._turns


def _asker(by: Client, trigger: Trigger) -> Asker:
    return Asker(
        trigger=trigger,
        principal=by.principal,
        read_only=by.readonly,
        payer=payer_of(by.principal, by.request.client),
    )


def _of_client(input: MessageInput) -> tuple[UIMessage, ...]:
    """Of what a client sends only a user's messages count (DESIGN §8.12)."""
    messages = tuple(from_client(m) for m in as_messages(input) if m["role"] == "user")
    if not messages:
        raise Refusal(400, "There is no user message: the server writes all others itself.")
    if len(messages) > MOST_NEW:
        raise Refusal(413, f"These are {len(messages)} messages; at most {MOST_NEW} may come.")
    check_sizes(messages)
    return messages


def _submission(admission: Admission) -> Submission:
    return Submission.of(admission.record, accepted=admission.accepted)
