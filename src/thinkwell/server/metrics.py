"""`GET /metrics`: what the process has done and how much it has to do, for Prometheus.

Counters are integers that grow where the event bus tells of an end; no event is made for them.
Everything else is looked up when somebody scrapes. Labels are classes and fixed words, never
the name of an agent or a person: however many there are, the page stays small and tells of nobody.

Strangers find nothing here: with `auth` it decides; without, only this machine may ask, and only
while the app answers to local names alone.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from thinkwell import __version__
from thinkwell.core.bus import EventBus, Tally
from thinkwell.core.bus_event import BusEvent
from thinkwell.core.events import (
    ChatRecoveryAttempt,
    ChatRecoveryCompleted,
    ChatRecoveryDetected,
    ChatRecoveryExhausted,
    ChatRecoveryFailed,
    ChatRecoverySkipped,
    ChatTurnFinish,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobHeld,
    JobRetried,
)
from thinkwell.core.limits import payer_of
from thinkwell.core.money import NANO
from thinkwell.core.user_code import call_user
from thinkwell.host.figures import HostFigures
from thinkwell.models.gate import LimitFigures
from thinkwell.server.access import Denied
from thinkwell.server.asgi import header
from thinkwell.server.edge import Edge, address_of
from thinkwell.server.prometheus import CONTENT_TYPE, Family, Sample, encode, histogram
from thinkwell.server.quota import refuse_message
from thinkwell.server.responses import text_response
from thinkwell.server.routing import AgentRoute
from thinkwell.store.open import file_sizes

MayRead: TypeAlias = Callable[[Request], bool | Awaitable[bool]]
"""Says whether a request may read the metrics. Contract: may be async; False hides them."""

ROUTE: Final = AgentRoute("", "", "metrics")
"""What `auth` is asked about: a route of no agent."""
OTHER: Final = "other"
"""The class of work that belongs to the host itself."""
INTERRUPTED: Final = "interrupted"
"""How a turn left its slot that goes on after the next start."""
STATUSES: Final = ("completed", "error", "aborted", "skipped", INTERRUPTED)
JOBS: Final[Mapping[type[BusEvent], str]] = {
    JobFinished: "finished",
    JobRetried: "retried",
    JobFailed: "failed",
    JobCancelled: "cancelled",
    JobHeld: "held",
}
RECOVERIES: Final[Mapping[type[BusEvent], str]] = {
    ChatRecoveryDetected: "detected",
    ChatRecoveryAttempt: "attempt",
    ChatRecoveryCompleted: "completed",
    ChatRecoverySkipped: "skipped",
    ChatRecoveryFailed: "failed",
    ChatRecoveryExhausted: "exhausted",
}
_FORWARDED: Final = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")
"""Headers of a proxy: what comes through one is not from this machine."""

Counts: TypeAlias = Counter[tuple[str, str]]
"""How many, by class and word."""


class Metrics:
    """The counters of one app."""

    def __init__(
        self, bus: EventBus, classes: Sequence[str], store: str, may_read: MayRead | None
    ) -> None:
        """Counts from now on."""
        self._classes, self._store, self.may_read = classes, store, may_read
        self._turns = bus.count(ChatTurnFinish, by="status", total="duration_ms")
        self._jobs = {word: bus.count(kind) for kind, word in JOBS.items()}
        self._recoveries = {word: bus.count(kind) for kind, word in RECOVERIES.items()}

    async def page(self, edge: Edge) -> str:
        """Everything, as text."""
        figures = await edge.host.figures()
        return encode([*self._counted(), *_looked_up(edge, figures), *_stored(self._store)])

    def _counted(self) -> Iterator[Family]:
        turns = _by_word(self._classes, STATUSES, self._turns.counts)
        yield Family(
            "thinkwell_turns_total",
            "counter",
            "Turns that left their slot, by how.",
            _by_class(turns, "status"),
        )
        ends, spent = Counter[str](), self._turns.totals
        for (cls, _), count in turns.items():
            ends[cls] += count
        sums = [Sample(spent[cls] / 1000, {"agent_class": cls}, "_sum") for cls in ends]
        counts = [Sample(n, {"agent_class": cls}, "_count") for cls, n in ends.items()]
        yield Family(
            "thinkwell_turn_seconds",
            "summary",
            "How long turns held their slot.",
            sums + counts,
        )
        yield Family(
            "thinkwell_jobs_total",
            "counter",
            "Attempts of jobs that ended, by how.",
            _by_class(_by_kind((*self._classes, OTHER), self._jobs), "outcome"),
        )
        yield Family(
            "thinkwell_recoveries_total",
            "counter",
            "What happened to interrupted turns.",
            _by_class(_by_kind(self._classes, self._recoveries), "event"),
        )


def _by_kind(classes: Sequence[str], tallies: Mapping[str, Tally]) -> Counts:
    """Events that have a class for each word."""
    counts: Counts = Counter()
    for word, tally in tallies.items():
        counts.update({(cls, word): n for (cls, _), n in tally.counts.items()})
    return _by_word(classes, tallies, counts)


def _by_word(classes: Sequence[str], words: Collection[str], found: Counts) -> Counts:
    """Every class with every word, and nothing else: what is not served here is `other`.

    From zero, or the first failure after a start would be no increase to whoever watches.
    """
    counts: Counts = Counter({(cls, word): 0 for cls in classes for word in words})
    for (cls, word), count in found.items():
        known = cls if cls in classes else OTHER
        counts[known, word if word in words else INTERRUPTED] += count
    return counts


def _by_class(counts: Counts, label: str) -> list[Sample]:
    return [Sample(n, {"agent_class": cls, label: word}) for (cls, word), n in counts.items()]


def _gauge(name: str, about: str, value: float) -> Family:
    return Family(name, "gauge", about, [Sample(value)])


def _looked_up(edge: Edge, figures: HostFigures) -> Iterator[Family]:
    yield Family(
        "thinkwell_info", "gauge", "The version that runs.", [Sample(1, {"version": __version__})]
    )
    ready = edge.host.not_ready() is None
    yield _gauge("thinkwell_ready", "1 if new work is accepted, as /readyz says.", int(ready))
    yield Family("thinkwell_chunks_total", "counter", "Stored chunks.", [Sample(figures.chunks)])
    yield histogram(
        "thinkwell_chunk_lag_seconds",
        "From the oldest chunk of a commit to the end of that commit.",
        figures.lags,
    )
    yield histogram("thinkwell_commit_seconds", "How long commits took.", figures.commits)
    yield from _spent(figures.spent)
    yield _gauge("thinkwell_turns_running", "Turns that run now.", figures.turns_running)
    work = figures.open_work
    if work is not None:
        waiting = "Accepted turns that do not run: in line, paused or interrupted."
        yield _gauge("thinkwell_turns_waiting", waiting, work.turns_waiting)
        yield _gauge("thinkwell_jobs_due", "Jobs that are due and wait.", work.jobs_due)
        yield _gauge("thinkwell_jobs_running", "Jobs that run now.", work.jobs_running)
        held = "Jobs that nothing in this process can run."
        yield _gauge("thinkwell_jobs_held", held, work.jobs_held)
    yield from _limits(figures.model_limits)
    awake = [Sample(count, {"agent_class": cls}) for cls, count in figures.awake.items()]
    yield Family("thinkwell_agents_awake", "gauge", "Agents in memory.", awake or [Sample(0)])
    yield _gauge("thinkwell_open_sockets", "Open WebSockets.", edge.meter.open_sockets)


def _limits(limits: Sequence[LimitFigures]) -> Iterator[Family]:
    """The patterns are what the app wrote: however many calls there are, they are as many."""
    if not limits:
        return
    waiting = [Sample(each.waiting, {"limit": each.limit}) for each in limits]
    running = [Sample(each.running, {"limit": each.limit}) for each in limits]
    about = "Model calls that wait for their limits."
    yield Family("thinkwell_model_calls_waiting", "gauge", about, waiting)
    about = "Limited model calls that run now."
    yield Family("thinkwell_model_calls_running", "gauge", about, running)
    samples: list[Sample] = []
    for each in limits:
        family = histogram("", "", each.waits)
        samples += [
            Sample(s.value, {"limit": each.limit, **s.labels}, s.suffix) for s in family.samples
        ]
    about = "How long model calls waited that had to."
    yield Family("thinkwell_model_wait_seconds", "histogram", about, samples)


def _spent(spent: Mapping[tuple[str, str], int]) -> Iterator[Family]:
    """From zero only for models that were called: which ones there are is known then."""
    tokens = [
        Sample(n, {"model": model, "direction": word})
        for (model, word), n in spent.items()
        if word != "nano_usd"
    ]
    dollars = [
        Sample(n / NANO, {"model": model})
        for (model, word), n in spent.items()
        if word == "nano_usd"
    ]
    about = "Tokens that providers counted, by model."
    yield Family("thinkwell_model_tokens_total", "counter", about, tokens)
    about = "What model calls have cost, in dollars, as far as prices are known."
    yield Family("thinkwell_model_cost_usd_total", "counter", about, dollars)


def _stored(store: str) -> Iterator[Family]:
    sizes = [Sample(size, {"file": file}) for file, size in file_sizes(store).items()]
    yield Family("thinkwell_store_bytes", "gauge", "Size of the store's files.", sizes)


async def serve_metrics(edge: Edge, request: Request) -> Response:
    """The page, or what somebody who may not read it gets."""
    metrics = edge.metrics
    if metrics is None:
        return text_response(404, "Not found")
    refusal = await _refusal(edge, metrics.may_read, request)
    if refusal is not None:
        return refusal
    headers = {"content-type": CONTENT_TYPE, "cache-control": "no-store"}
    return Response(await metrics.page(edge), headers=headers)


async def _refusal(edge: Edge, may_read: MayRead | None, request: Request) -> Response | None:
    principal = None
    if may_read is not None:
        answer = await call_user("metrics", may_read, request)
        if not isinstance(answer, bool):
            raise TypeError(
                f"App(metrics=...) returned {type(answer).__name__}. Return True to show the "
                "metrics, False to hide them."
            )
        if not answer:
            return text_response(404, "Not found")
    elif edge.access.asks:
        verdict = await edge.access.judge(request, ROUTE)
        if isinstance(verdict, Response):
            return verdict
        if isinstance(verdict, Denied):
            return text_response(verdict.status, verdict.text, dict(verdict.headers))
        principal = verdict.principal
    elif not _is_local(edge, request):
        return text_response(404, "Not found")
    busy = refuse_message(edge, payer_of(principal, address_of(request)))
    return None if busy is None else text_response(busy.status, busy.text, busy.headers)


def _is_local(edge: Edge, request: Request) -> bool:
    """Whether nobody else can reach the app, as far as can be told, and this machine asks."""
    if edge.allowed_hosts is None or not all(map(_is_loopback, edge.allowed_hosts)):
        return False
    if any(header(request.scope, name) is not None for name in _FORWARDED):
        return False
    return _is_loopback(address_of(request) or "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
