"""Every error Thinkwell raises on purpose.

ThinkwellError
├─ ConfigurationError          the program is put together wrongly; nothing ran
│  ├─ AgentDefinitionError     a class body that cannot work (reserved name, __init__, clash)
│  ├─ ToolDefinitionError      a tool whose name, signature or schema cannot be offered to a model
│  ├─ ModelNotConfiguredError  an agent without a model
│  └─ MissingExtraError        an optional library is not installed; the text names the extra
├─ TurnError                   something about one turn
│  ├─ NestedTurnError          a blocking call from inside a turn of the same agent
│  ├─ TurnActiveError          the history cannot be replaced while a turn runs or waits
│  ├─ AbortedError             the turn that `chat` waited for was stopped
│  ├─ ModelError               the model failed; carries provider, status, retryable
│  │  └─ ModelTimeoutError     it took longer than the turn allows
│  ├─ BudgetError              a budget cannot be kept as it stands, or there is no such budget
│  │  └─ BudgetExceededError   a budget has no room for the next step
│  ├─ MaxStepsError            the cap of steps was reached and `on_max_steps` is `error`
│  ├─ TurnChainError           turns that start turns in their hooks went on for too long
│  ├─ EmptyPromptError         there is nothing to send to the model
│  ├─ OutputError              the final answer does not fit the output schema
│  ├─ TurnFailedError          what `raise_for_status` raises: the turn did not complete
│  ├─ CallerLostError          a function or object that a turn needs died with its process
│  └─ TurnNotFoundError        no turn with that request id
├─ ToolError                   one tool call failed; the model sees the text, the turn goes on
│  ├─ UnknownToolError         the model asked for a tool that is not offered
│  ├─ DisabledToolError        the tool or its scope is switched off at the moment
│  ├─ ToolInputError           arguments that are no JSON or do not fit the schema
│  ├─ ToolRepairError          `repair_tool_call` failed on a call that was wrong already
│  ├─ ToolOutputError          a result that JSON cannot hold
│  ├─ RedactionError           `on_tool_result` or `on_tool_error` failed: what it saw is withheld
│  └─ ToolOutcomeUnknownError  a `once` tool was cut off while it ran
├─ SessionError                the message tree
│  ├─ ParentNotFoundError      append under an id that is not there
│  ├─ ReservedIdError          an id with a reserved prefix
│  ├─ CorruptTreeError         a cycle in the stored tree
│  ├─ SearchUnsupportedError   a conversation is searched, and its agent has no `Search`
│  ├─ MessageTooLargeError     a message that cannot be made to fit a row
│  ├─ DuplicateBlockError      two context blocks with one label
│  ├─ BlockNotFoundError       no context block has that label
│  ├─ BlockReadonlyError       a context block that cannot be written, or not in this way
│  ├─ BlockLimitError          text that is longer than its context block may be
│  └─ ConflictError            a context block was changed by somebody else meanwhile
├─ StoreError                  the database
│  ├─ StoreLockedError         this database is open already, mostly in another process
│  ├─ StoreUnavailableError    it does not write now (a full disk, a file that is gone)
│  ├─ SchemaTooNewError        the file was written by a newer Thinkwell
│  └─ OwnershipLostError       another host took this agent over
│     └─ AgentDeletedError     the agent is deleted, or is just being deleted
├─ SubmissionConflictError     an id and an idempotency key that name different turns
├─ JobError                    a job that could never run, or an attempt of one that is over
├─ FeatureError                a feature raised; the text names it
├─ ReadonlyError               a read-only client tried to change the state
└─ HostClosedError             the app is not running (or is stopping)

An error text names the wrong call and the right one. Data stays on attributes. `AbortTurn` and
`FailTurn` end a turn from inside; they are BaseExceptions, so that `except Exception` in a tool or
hook cannot swallow them.
"""

from __future__ import annotations

from collections.abc import Sequence

STILL_RUNS = "Stopped; it may still finish."
"""What is read of a call that was stopped and ignored it."""


class ThinkwellError(Exception):
    """Base of every error raised on purpose."""


class ConfigurationError(ThinkwellError):
    """The program is put together wrongly; nothing ran."""


class AgentDefinitionError(ConfigurationError):
    """An agent class that cannot work."""


class ToolDefinitionError(ConfigurationError):
    """A tool that cannot be offered to a model."""


class ModelNotConfiguredError(ConfigurationError):
    """An agent without a model."""


class MissingExtraError(ConfigurationError):
    """An optional library is missing; the text names the extra that brings it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional library. Install it: pip install 'thinkwell[{extra}]'"
        )
        self.extra = extra


class TurnError(ThinkwellError):
    """Something about one turn."""


class NestedTurnError(TurnError):
    """A blocking call from inside a turn of the same agent: it would wait for itself for ever.

    So would one of an agent that waits, maybe through others, for the one that calls it. `chain`
    has their ids, from the agent that is called to the one that calls.
    """

    def __init__(self, call: str, chain: Sequence[str] = ()) -> None:
        if len(chain) > 1:
            circle = " waits for ".join((*chain, chain[0]))
            super().__init__(
                f"{call}() would wait for ever: {circle}. Use `submit(...)` for one of them, which "
                "does not wait."
            )
        else:
            super().__init__(
                f"{call}() was called from inside a turn of the same agent and would wait for "
                "itself. Use `await self.submit(...)` to run it after this turn, "
                "or `await self.add_messages(...)` to write without running a turn."
            )
        self.call = call
        self.chain = tuple(chain)


class TurnActiveError(TurnError):
    """The history or the active branch was to be changed while a turn runs or waits."""

    def __init__(self, call: str) -> None:
        super().__init__(
            f"{call}() was called while a turn runs or waits. "
            "Call it between turns: `await agent.wait_until_stable()` first."
        )
        self.call = call


class AbortedError(TurnError):
    """The turn that `chat` or `chat_stream` waited for was stopped before its end."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The turn was stopped: {reason}")
        self.reason = reason


class ModelError(TurnError):
    """The model failed. `status` is the provider's HTTP status when there was one."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        body: str = "",
        code: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
        cut: bool = False,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.body = body
        self.code = code
        """The provider's own word for what went wrong, such as `context_length_exceeded`."""
        self.retryable = retryable
        self.retry_after = retry_after
        """Seconds after which the provider wants to be asked again, if it said so."""
        self.cut = cut
        """The answer broke off: a lost connection, not something the provider said."""


class ModelBusyError(ModelError):
    """A model has no free slot now, and its `ModelLimits` say not to wait for one."""


class ModelTimeoutError(ModelError):
    """The model took longer than the turn allows."""


class MaxStepsError(TurnError):
    """The turn reached its cap of steps and `on_max_steps` is `error`."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            f"The turn made {steps} model calls and the model still asks for tools. "
            "Raise max_steps, or set on_max_steps to 'stop' or 'answer'."
        )
        self.steps = steps


class TurnChainError(TurnError):
    """Turns that start turns in their response hooks went on for too long."""

    def __init__(self, depth: int) -> None:
        super().__init__(
            f"{depth} turns have started one another in on_chat_response. Stop the chain, or raise "
            "max_turn_chain."
        )
        self.depth = depth


class EmptyPromptError(TurnError):
    """There is no message to send to the model."""


class OutputError(TurnError):
    """The final answer does not fit the schema of `output`.

    `problems` has one readable text per wrong field; `raw` is the answer as the model gave it.
    """

    def __init__(self, problems: tuple[str, ...], raw: str = "") -> None:
        super().__init__(f"The answer does not fit the output schema: {'; '.join(problems)}")
        self.problems = problems
        self.raw = raw


class TurnFailedError(TurnError):
    """The turn that `run` waited for has not completed, or has no output though one was asked for.

    `status`, `stop_reason`, `error` and `request_id` are those of the result.
    """

    def __init__(
        self, text: str, *, request_id: str, status: str, stop_reason: str | None, error: str | None
    ) -> None:
        super().__init__(text)
        self.request_id = request_id
        self.status = status
        self.stop_reason = stop_reason
        self.error = error


class ReplayError(ThinkwellError, AssertionError):
    """A replayed turn does not do what was recorded: the text has the first difference."""


class CallerLostError(TurnError):
    """What `run` was given for a turn was no data and died with its process; `lost` names it."""

    def __init__(self, lost: Sequence[str]) -> None:
        super().__init__(
            f"This turn was asked for with {', '.join(lost)}, which died with the process that "
            "asked, so it cannot go on. Ask again; a model that is given by name and a tool of the "
            "agent's class outlive a crash."
        )
        self.lost = tuple(lost)


class TurnNotFoundError(TurnError):
    """No turn with that request id."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"No turn has the request id {request_id!r}.")
        self.request_id = request_id


class ToolError(ThinkwellError):
    """One tool call failed. Raise it in a tool to say why; the model reads the text."""


class UnknownToolError(ToolError):
    """The model asked for a tool that is not offered in this step."""

    def __init__(self, name: str, available: list[str]) -> None:
        offered = ", ".join(sorted(available)) or "none"
        super().__init__(f"There is no tool named {name!r}. Available tools: {offered}.")
        self.name = name
        self.available = available


class ToolChangedError(ToolError):
    """The code was changed after the model had called the tool, so the call was not run.

    `change` says what is different; None if no tool has that name any more.
    """

    def __init__(
        self,
        name: str,
        change: str | None = None,
        *,
        available: list[str] | None = None,
        may_have_run: bool = False,
    ) -> None:
        ran = (
            "It may have run once before that, and was not run again."
            if may_have_run
            else "This call was not run."
        )
        if change is None:
            offered = ", ".join(sorted(available or [])) or "none"
            text = (
                f"The tool {name!r} was removed or renamed after you called it. {ran} Available "
                f"tools: {offered}."
            )
        else:
            text = (
                f"The tool {name!r} has changed since you called it: {change}. {ran} Its input "
                "schema is another one now; call it again with that if it is still needed."
            )
        super().__init__(text)
        self.name = name
        self.change = change
        self.available = available


class ToolInputError(ToolError):
    """Arguments that are not JSON or do not fit the tool's schema."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"Invalid input for tool {name!r}: {detail}")
        self.name = name
        self.detail = detail


class DisabledToolError(ToolError):
    """The tool, or the scope it belongs to, is switched off at the moment."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The tool {name!r} is not available at the moment.")
        self.name = name


class ToolRepairError(ToolError):
    """`repair_tool_call` failed; `problem` is what was wrong with the call before that."""

    def __init__(self, name: str, problem: ToolError, detail: str) -> None:
        super().__init__(f"{problem} Repairing the call failed as well: {detail}")
        self.name = name
        self.problem = problem


class ToolOutputError(ToolError):
    """A result that JSON cannot hold."""


class RedactionError(ToolError):
    """`on_tool_result` or `on_tool_error` failed, so what it was to look at is withheld.

    Says which hook and what it raised, never the text of that: it may quote the hidden value.
    """

    def __init__(self, hook: str, detail: str) -> None:
        super().__init__(detail)
        self.hook = hook


class ToolOutcomeUnknownError(ToolError):
    """The tool was cut off while it ran; whether it took effect is not known."""

    def __init__(self, name: str, *, earlier: bool = False, stopped: str | None = None) -> None:
        text = (
            f"Stopped while it ran ({stopped}). It may have happened."
            if stopped is not None
            else f"An earlier call of {name!r} with the same input was cut off while it ran, and "
            "its outcome is unknown. This call was not run, because it might do the same twice. "
            "Find out another way whether it took effect, or tell the user; do not call it again."
            if earlier
            else f"The process stopped while {name!r} was running, so its outcome is unknown. "
            "It was not run again, because it is not declared safe to repeat."
        )
        super().__init__(text)
        self.name = name


class ToolTimeoutError(ToolError):
    """A tool did not finish within its time limit."""

    def __init__(self, name: str, seconds: float, *, in_doubt: bool = False) -> None:
        doubt = " and was stopped. It may have happened." if in_doubt else "."
        super().__init__(f"Tool {name!r} did not finish within {seconds:g} s{doubt}")
        self.name = name
        self.seconds = seconds


class ToolLeftBehindError(ToolError):
    """A tool ignored that it was cancelled: the turn went on without it, and it may still finish.

    The ledger records its outcome when it comes; the stored answer does not change.
    """

    def __init__(self, name: str, stopped: str | None, limit: float | None) -> None:
        why = f"did not finish within {limit:g} s" if stopped is None and limit else ""
        text = f"Tool {name!r} {why}; it may still finish." if why else STILL_RUNS
        super().__init__(text)
        self.name = name


class SessionError(ThinkwellError):
    """The message tree."""


class ParentNotFoundError(SessionError):
    """Append under an id that is not in the session."""

    def __init__(self, parent_id: str) -> None:
        super().__init__(f"No message has the id {parent_id!r}, so nothing can be added under it.")
        self.parent_id = parent_id


class ReservedIdError(SessionError):
    """An id with a prefix that Thinkwell keeps for itself."""


class CorruptTreeError(SessionError):
    """The stored tree has a cycle."""


class SearchUnsupportedError(SessionError):
    """A conversation is searched whose agent has no search."""

    def __init__(self) -> None:
        super().__init__(
            "This agent has no search. Give its class one: `features = [Search()]`, with "
            "`from thinkwell.features import Search`."
        )


class MessageTooLargeError(SessionError):
    """A message that cannot be made to fit one row."""


class StoreError(ThinkwellError):
    """The database refused or failed."""


NOT_STORED = "Nothing can be stored at the moment, so this was not accepted. Try again later."


class StoreUnavailableError(StoreError):
    """The database does not write at the moment: the disk is full, the file is gone, ….

    Nothing was stored. `reason` says why, in the database's words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Nothing can be stored at the moment ({reason}), so this was not accepted. "
            "Try again when the store writes: GET /readyz tells."
        )
        self.reason = reason

    def client_text(self, *, exposed: bool = False) -> str:
        """What a client reads: why nothing is stored is for those who run the server."""
        return str(self) if exposed else NOT_STORED


class StoreLockedError(StoreError):
    """Another process holds this database."""


class SchemaTooNewError(StoreError):
    """The database was written by a newer Thinkwell."""


class OwnershipLostError(StoreError):
    """Another host took this agent over; this activation must stop writing."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"Agent {agent_id!r} is owned by another host now.")
        self.agent_id = agent_id


class AgentDeletedError(OwnershipLostError):
    """The agent is deleted, or is just being deleted. The next call finds a new one."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(agent_id)
        self.args = (f"Agent {agent_id!r} is deleted.",)


class SubmissionConflictError(ThinkwellError):
    """A submission id and an idempotency key that name different turns."""


class JobError(ThinkwellError):
    """A job that could never run, or an attempt of one that is over."""


class ApprovalError(ThinkwellError):
    """A rule about approvals that cannot be made: its tool, its arguments or who it is for."""


class FiberError(ThinkwellError):
    """A fiber that cannot be started or changed, or a stash outside of one."""


class ScheduleError(ThinkwellError, ValueError):
    """A schedule that cannot be read, or options of one that make no sense. Nothing was stored."""


class ReadonlyError(ThinkwellError):
    """A read-only client tried to change the agent's state."""

    def __init__(self) -> None:
        super().__init__("Connection is readonly")


class HostClosedError(ThinkwellError):
    """The app is not running. Use `async with app:` or serve it."""


class AgentParkedError(ThinkwellError):
    """An agent is not started, because the process died too often while it was."""

    def __init__(self, agent_id: str, reason: str) -> None:
        super().__init__(
            f"{agent_id} is not available. {reason} It is tried again after a planned restart, or "
            "with `thinkwell turns retry` and one of its turns."
        )
        self.agent_id = agent_id


class UserCodeError(ThinkwellError):
    """A tool, hook or callback raised something that is no `Exception`, for example `SystemExit`.

    Only its call fails; what it raised is the `__cause__`.
    """

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(f"{what} raised {type(error).__name__}, which is no Exception.")


class FeatureError(ThinkwellError):
    """A feature raised where nothing can go on without it; what it raised is the `__cause__`."""

    def __init__(self, feature: str, moment: str, error: Exception) -> None:
        super().__init__(
            f"The feature {feature!r} failed in {moment}: {type(error).__name__}: {error}"
        )
        self.feature = feature
        self.moment = moment


class AbortTurn(BaseException):
    """Stops the turn: `raise AbortTurn("reason")` in a hook or tool. The turn ends `aborted`.

    Not an `Exception`, so that `except Exception` in a tool or hook cannot swallow a stop.
    """

    def __init__(self, reason: str = "aborted") -> None:
        super().__init__(reason)
        self.reason = reason


class FailTurn(BaseException):
    """Fails the turn: `raise FailTurn(error)` in a hook or tool, whatever its scope."""

    def __init__(self, error: Exception | str) -> None:
        super().__init__(error if isinstance(error, str) else type(error).__name__)
        self.error = error if isinstance(error, Exception) else TurnError(error)
