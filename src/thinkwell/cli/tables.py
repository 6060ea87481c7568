"""How the commands for operators look in a terminal: lines that fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.padding import Padding

from thinkwell.cli.plain_text import PlainTable, PlainText
from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.money import show_usd
from thinkwell.journal.budget import describe
from thinkwell.journal.code_version import read_code
from thinkwell.journal.costs import CostLine, total_of
from thinkwell.journal.jobs import Job
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import text_of

_STYLES = {
    "completed": "green",
    "running": "cyan",
    "waiting": "yellow",
    "error": "red",
    "parked": "bold red",
    "aborted": "magenta",
    "skipped": "dim",
    "done": "green",
    "failed": "red",
    "held": "bold red",
    "cancelled": "magenta",
    "allowed": "green",
    "allows": "green",
    "denied": "red",
    "expired": "magenta",
    "withdrawn": "dim",
}
LONGEST_TEXT = 400
"""Characters of a question that are shown."""
WIDE = 200
"""Columns of a file or a pipe."""
SOON = 10.0
"""Seconds after which a job that is due and has not begun is worth a word."""
TURN_COLUMNS = (36, 10, 9)
"""Widths of a turn's id, status and age; its agent gets the rest."""


class Printer:
    """Writes to the standard output."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, soft_wrap=False)
        if not self._console.is_terminal:
            self._console.width = WIDE
        self._now = SystemClock().now()

    def json(self, value: Any) -> None:
        """For programs."""
        self._console.file.write(json.dumps(value) + "\n")

    def note(self, text: str) -> None:
        """One line."""
        self._console.print(PlainText(text))

    def turns(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One line per turn, and what went wrong below it."""
        for row in rows:
            state = status_of(row["status"], row["stop_reason"])
            whose = row["agent"]
            if row["nano_usd"] is not None:
                whose = f"{whose}  {show_usd(row['nano_usd'])}"
            self._line(row, state, self._ago(row["created_at"]), whose)
            if row["error"]:
                self._below(row["error"])

    def costs(self, by: str, lines: Sequence[CostLine]) -> None:
        """One line per agent, principal, day or model, the dearest first, and their sum."""
        table = PlainTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column(by, overflow="fold")
        for name in ("cost", "tokens in", "tokens out", "turns"):
            table.add_column(name, justify="right")
        for line in lines:
            table.add_row(*_cost_cells(line, line.key or "nobody in particular"))
        if len(lines) > 1:
            table.add_row(*_cost_cells(total_of(lines), "together"), style="bold")
        self._console.print(table)
        if any(line.unpriced for line in lines):
            self.note(
                "A cost with + is not whole: some calls went to models without a known price. "
                "Install thinkwell[prices], or name them in App(prices={...})."
            )

    def budgets(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One line per sum that a budget counts, in dollars and in tokens."""
        table = PlainTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("whose", overflow="fold")
        for name in ("spent", "reserved", "allowed on top"):
            table.add_column(name, justify="right")
        for row in rows:
            owner, subject, day = row["scope"].split("|", 1)[0], *row["scope"].rsplit("|", 1)
            whose = subject.partition("|")[2].replace(":", " ", 1).strip()
            kind = "all agents" if owner == "*" else owner
            named = " ".join(filter(None, (f"{kind}:", whose, day)))
            sums = (
                f"{show_usd(row[f'{word}nano_usd'])}, {row[f'{word}tokens']:,} tokens"
                for word in ("", "reserved_", "added_")
            )
            table.add_row(PlainText(named), *map(PlainText, sums))
        self._console.print(table)

    def jobs(self, rows: Sequence[Mapping[str, Any]], *, served: bool) -> None:
        """One line per job, and what went wrong, or why it does not run, below it."""
        for row in rows:
            state = "held" if row["held"] else row["status"]
            self._line(row, state, self._ago(row["created_at"]), f"{row['agent']} {row['name']}")
            for said in self._about_job(row, served=served):
                self._below(said)

    def schedules(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One line per schedule or task: whose, when it comes, and how its last run ended."""
        for row in rows:
            state = row["status"] if row["status"] == "running" else row["outcome"] or "new"
            about = f"{row['agent']} {row['task']}, {row['schedule']}"
            self._line(row, state, self._ago(row["next_run"]), about)
            if row["error"]:
                self._below(row["error"])

    def _about_job(self, row: Mapping[str, Any], *, served: bool) -> Iterator[str]:
        if said := row["held"] or row["error"]:
            yield said
        if row["cancel_requested"] and row["cancel_requested"] != "cancelled":
            yield f"Cancelled: {row['cancel_requested']}"
        if row["status"] == "waiting" and not row["held"]:
            yield self._due(row["due_at"], served=served)

    def _due(self, at: float, *, served: bool) -> str:
        """When a waiting job begins, or why it may not have begun."""
        if at > self._now:
            return f"due {self._ago(at)}"
        if not served:
            return f"due {self._ago(at)}; nobody serves this database"
        if self._now - at < SOON:
            return "due now"
        return (
            f"due {self._ago(at)}; others are before it, or the server does not have the class of "
            "its agent"
        )

    def approvals(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One line per question, and below it the call, who asked and when it expires."""
        for row in rows:
            state = row["outcome"] or "waiting"
            whose = f"{row['agent']} {row['tool_name']}"
            self._line({"id": row["approval_id"]}, state, self._ago(row["asked_at"]), whose)
            self._below(shorten(row["input"]))
            if row["asker"]:
                self._below(f"asked for by {json.loads(row['asker'])['id']}")
            if row["approvers"]:
                self._below(f"to be decided by {', '.join(json.loads(row['approvers']))}")
            if row["note"]:
                self._below(row["note"])
            if row["expires_at"] is not None and row["outcome"] is None:
                self._below(f"expires {self._ago(row['expires_at'])}")

    def rules(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One line per rule, and below it what it allows, for whom, and who made it."""
        for row in rows:
            whose = f"{row['agent']} {row['tool_name']}"
            self._line(row, "allows", self._ago(row["made_at"]), whose)
            self._below(shorten(row["arguments"]))
            self._below(f"for {row['principal'] or 'turns of nobody in particular'}")
            if row["made_by"]:
                self._below(f"made by {json.loads(row['made_by'])['id']}")

    def job(self, job: Job, *, served: bool) -> None:
        """All about one job."""
        state = "held" if job.held else job.status
        facts = self._facts()
        facts.add_row("job", job.id)
        facts.add_row("agent", job.agent_id)
        facts.add_row("handler", job.name)
        facts.add_row("status", PlainText(state, style=_STYLES.get(state, "")))
        waits = job.status == "waiting" and not job.held and job.due_at <= self._now
        because = self._due(job.due_at, served=served) if waits else job.held
        said_of = {"because": because or job.cancel_requested, "error": job.error, "key": job.key}
        for name, said in said_of.items():
            if said:
                facts.add_row(name, said)
        facts.add_row("enqueued", self._when(job.created_at))
        facts.add_row("due", self._when(job.due_at))
        facts.add_row("attempts", f"{job.attempt} of {job.max_attempts}")
        if job.deaths:
            facts.add_row("died", f"{job.deaths}× in a row")
        if job.finished_at is not None:
            facts.add_row("ended", self._when(job.finished_at))
        for name, value in (("payload", job.payload), ("stash", job.stash)):
            if value is not None:
                facts.add_row(name, PlainText(_cut(json.dumps(value))))
        self._console.print(facts)

    def _line(self, row: Mapping[str, Any], state: str, age: str, whose: str) -> None:
        line = PlainTable.grid(padding=(0, 2, 0, 0), expand=False)
        for column in TURN_COLUMNS:
            line.add_column(min_width=column, no_wrap=True)
        line.add_column(no_wrap=True)
        agent = PlainText(whose, style="bold")
        rest = self._console.width - sum(TURN_COLUMNS) - 2 * len(TURN_COLUMNS)
        agent.truncate(rest, overflow="ellipsis")
        line.add_row(
            PlainText(row["id"]),
            PlainText(state, style=_STYLES.get(state, "")),
            PlainText(age, style="dim"),
            agent,
        )
        self._console.print(line)

    def _below(self, text: str) -> None:
        self._console.print(Padding(PlainText(text, style="dim"), (0, 0, 0, 4)))

    def turn(self, record: TurnRecord, calls: Sequence[Mapping[str, Any]]) -> None:
        """How a turn stands; what happened in it comes below."""
        state = status_of(record.status, record.stop_reason)
        facts = self._facts()
        facts.add_row("turn", record.request_id)
        facts.add_row("agent", record.agent_id)
        facts.add_row("status", PlainText(state, style=_STYLES.get(state, "")))
        if record.stop_reason not in (None, state):
            facts.add_row("because", record.stop_reason)
        if record.error:
            facts.add_row("error", record.error)
        facts.add_row("asked for", f"{self._when(record.created_at)}, {record.trigger}")
        if record.settled_at is not None:
            facts.add_row("ended", self._when(record.settled_at))
        facts.add_row("attempts", str(record.attempt))
        if record.code is not None:
            facts.add_row("accepted by", str(read_code(record.code)))
        used = record.usage
        if record.steps:
            tokens = f"{used.input_tokens or 0:,} tokens in, {used.output_tokens or 0:,} out"
            cost = "" if used.nano_usd is None else f", {show_usd(used.nano_usd)}"
            facts.add_row("steps", f"{record.steps}, {tokens}{cost}")
        if not record.settled:
            for place, count in record.incident.deaths.items():
                facts.add_row("died", f"{count}× in {describe(place)}")
        question = " ".join(" ".join(text_of(m) for m in record.input).split())
        if question:
            facts.add_row("question", _cut(question))
        for call in calls:
            outcome = call["outcome"] or ("no result" if not record.settled else "outcome unknown")
            facts.add_row("tool call", f"{call['tool_name']} ({call['call_id']}): {outcome}")
        self._console.print(facts)

    def outcomes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One line per call with an unknown outcome."""
        table = PlainTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for name in ("agent", "call", "tool", "input", "began"):
            table.add_column(name, overflow="fold" if name == "call" else "ellipsis")
        for row in rows:
            given = PlainText(_cut(json.dumps(row["input"])))
            names = (PlainText(row[name]) for name in ("agent", "call_id", "tool_name"))
            table.add_row(*names, given, self._ago(row["claimed_at"]))
        self._console.print(table)
        self.note(
            "`thinkwell tools resolve CALL --output JSON` or `--not-done` says what came of it."
        )

    def deploy(self, path: str, findings: Sequence[Any], *, certain: bool) -> None:
        """What new code would not understand, or what only running it could tell."""
        if not findings:
            if certain:
                self.note(f"{path} understands everything that is stored.")
            return
        what = "would not understand" if certain else "may not understand; only running it can tell"
        self.note(f"{path} {what}:")
        facts = self._facts()
        for each in findings:
            place = f"{each.agent} {each.id}".strip()
            facts.add_row(each.kind, PlainText(f"{place}: {each.text}"))
        self._console.print(facts)

    def agents(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One line per agent."""
        table = PlainTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("agent", no_wrap=True, overflow="ellipsis")
        for name in ("turns", "open", "parked"):
            table.add_column(name, justify="right")
        table.add_column("last turn")
        table.add_column("")
        for row in rows:
            last = "" if row["last_turn_at"] is None else self._ago(row["last_turn_at"])
            parked = PlainText(
                str(row["parked"] or 0), style="bold red" if row["parked"] else "dim"
            )
            open_turns = str(row["unsettled"] or 0)
            held = PlainText("paused", style="yellow") if row["paused_at"] is not None else ""
            table.add_row(PlainText(row["id"]), str(row["turns"]), open_turns, parked, last, held)
        self._console.print(table)

    def agent(
        self, about: Mapping[str, Any], turns: Mapping[str, int], jobs: Mapping[str, int]
    ) -> None:
        """All about one agent; its last turns come below."""
        facts = self._facts()
        facts.add_row("agent", PlainText(about["id"], style="bold"))
        facts.add_row("made", self._when(about["created_at"]))
        if about["paused_at"] is not None:
            why = about["pause_reason"] or ""
            facts.add_row("paused", f"{self._when(about['paused_at'])}. {why}".strip())
        last = about["last_turn_at"]
        facts.add_row("last turn", "never" if last is None else self._when(last))
        facts.add_row("messages", f"{about['messages']:,} ({size(about['message_bytes'])})")
        for name, counts in (("turns", turns), ("jobs", jobs)):
            said = (f"{count:,} {status_of(state, state)}" for state, count in counts.items())
            facts.add_row(name, ", ".join(said) or "none")
        facts.add_row("stored values", f"{about['stored_values']:,}")
        state = about["state"]
        facts.add_row("state", "none" if state is None else PlainText(_cut(json.dumps(state))))
        self._console.print(facts)

    def report(self, report: Mapping[str, Any]) -> None:
        """What `doctor` found."""
        facts = self._facts()
        facts.add_row("database", f"{report['database']} ({size(report['bytes'])})")
        facts.add_row("log", size(report["logBytes"]))
        facts.add_row("schema", _version(report["schemaVersion"], report["newestVersion"]))
        damages = report["damages"]
        pages = (
            PlainText("damaged", style="bold red") if damages else PlainText("sound", style="green")
        )
        facts.add_row("pages", pages)
        for damage in damages:
            facts.add_row("", PlainText(damage))
        facts.add_row("served by", _server(report["process"], reachable=report["reachable"]))
        if "turns" in report:
            counts = ("agents", "messages", "turns", "running", "waiting", "parked")
            for name in counts:
                facts.add_row(name, f"{report[name]:,}")
            jobs = (f"{count:,} {state}" for state, count in report["jobs"].items())
            facts.add_row("jobs", ", ".join(jobs))
        self._console.print(facts)

    def _facts(self) -> PlainTable:
        table = PlainTable.grid(padding=(0, 2, 0, 0))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        return table

    def _when(self, at: float) -> str:
        moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{moment} ({self._ago(at)})"

    def _ago(self, at: float) -> str:
        return ago(self._now - at)


def shorten(text: str) -> str:
    """A text that is not longer than what is shown of a question."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _cost_cells(line: CostLine, name: str) -> list[PlainText]:
    cost = show_usd(line.nano_usd) + ("+" if line.unpriced else "")
    numbers = (f"{n:,}" for n in (line.input_tokens, line.output_tokens, line.turns))
    return [PlainText(name), PlainText(cost), *map(PlainText, numbers)]


def status_of(status: str, stop_reason: str | None) -> str:
    """The status in a word that says the most."""
    if stop_reason == "parked":
        return "parked"
    return "waiting" if status == "accepted" else status


def ago(seconds: float) -> str:
    """How long ago, or how long still, in the largest unit that fits."""
    length, name = abs(seconds), "s"
    for unit, size_of_unit in (("d", 86400), ("h", 3600), ("min", 60)):
        if length >= size_of_unit:
            length, name = length // size_of_unit, unit
            break
    return f"{int(length)} {name} ago" if seconds >= 0 else f"in {int(length)} {name}"


def size(count: int) -> str:
    """Bytes for people."""
    if count < 1000:
        return f"{count} bytes"
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 1000:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"


def _version(version: int | None, newest: int) -> str:
    if version is None:
        return "cannot be read"
    if version > newest:
        return f"version {version}, newer than this Thinkwell ({newest})"
    if version < newest:
        return f"version {version}; the next start brings it to {newest}"
    return f"version {version}"


def _server(process: int | None, *, reachable: bool) -> str:
    if process is None:
        return "nobody"
    return f"process {process}" if reachable else f"process {process}, which does not answer"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
