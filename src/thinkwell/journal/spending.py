"""The ledger that keeps budgets: what is spent and what is reserved, by scope.

A step reserves the most it can cost in the transaction that starts it, and gives back what it did
not need in the one that finishes it. A reservation whose step never finished is counted as spent:
the provider may have billed it. So for each scope, spent and reserved together never exceed the
cap. `judge` decides, from what is known; the functions below it carry that out in a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from thinkwell.core import json
from thinkwell.core.budgets import Amount, Budget
from thinkwell.core.errors import StoreError
from thinkwell.core.money import show_usd
from thinkwell.core.principal import Principal
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.usage import Usage
from thinkwell.store.base import Reader, Row, Transaction

ALL_AGENTS: Final = "*"
"""Whose budget an app's is."""


# Scopes


class HeldBudget(msgspec.Struct, frozen=True):
    """A budget and whose it is: a class of agents, or all agents of the app."""

    budget: Budget
    owner: str


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A budget as it is for one turn at one time."""

    held: HeldBudget
    scope: str
    day: str | None
    agent: str | None
    principal: str | None


def limit_of(held: HeldBudget, turn: TurnRecord, now: float, *, day: str | None = None) -> Limit:
    """Which sum a step of this turn counts in."""
    budget, subject = held.budget, held.budget.subject
    agent = turn.agent_id if subject in ("turn", "agent") else None
    principal = _id_of(turn.principal) if subject == "principal" else None
    named = {
        "turn": f"{turn.agent_id}/{turn.message_id}",
        "agent": turn.agent_id,
        "principal": principal or "",
        "all": "",
    }
    if "day" not in budget.pers:
        day = None
    elif day is None:
        day = datetime.fromtimestamp(now, ZoneInfo(budget.timezone)).date().isoformat()
    scope = f"{held.owner}|{subject}:{named[subject]}|{day or ''}"
    return Limit(held=held, scope=scope, day=day, agent=agent, principal=principal)


def moved_scope(scope: str, was: str, agent_id: str) -> str:
    """The scope of an agent that has another id now. Raises `StoreError` if it is not its own."""
    owners = {was.partition("/")[0]: agent_id.partition("/")[0], ALL_AGENTS: ALL_AGENTS}
    for old, new in owners.items():
        for subject, end in (("agent", "|"), ("turn", "/")):
            own = f"{old}|{subject}:{was}{end}"
            if scope.startswith(own):
                return f"{new}|{subject}:{agent_id}{end}{scope.removeprefix(own)}"
    raise StoreError(
        f"The export has a sum of budgets {scope!r:.80}, which is not one of {was}: the file was "
        "damaged or changed. Nothing was changed here. Export the agent again."
    )


def _id_of(principal: Principal | None) -> str | None:
    return None if principal is None else principal.id


# The decision


class ScopeSums(msgspec.Struct, frozen=True, kw_only=True):
    """How a scope stands."""

    nano_usd: int = 0
    tokens: int = 0
    reserved_nano_usd: int = 0
    reserved_tokens: int = 0
    added_nano_usd: int = 0
    added_tokens: int = 0


UNUSED: Final = ScopeSums()


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a step can cost, if its output is limited so."""

    nano_usd: int
    """0 if no budget is in dollars."""
    tokens: int
    limit: int | None = None
    """Output tokens that the provider has to be told; None: it is limited anyway."""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A budget that has no room for a step."""

    limit: Limit
    standing: ScopeSums
    need: Need

    @property
    def in_usd(self) -> bool:
        """Whether it is dollars that are missing; else tokens."""
        return self._missing("nano_usd") > 0

    def _missing(self, unit: str) -> int:
        cap = getattr(self.limit.held.budget.cap, unit)
        return 0 if cap is None else -_room(cap, self.standing, unit) + getattr(self.need, unit)

    def offer(self) -> Amount:
        """How much more somebody is asked for: what the author says, as often as it takes."""
        more = self.limit.held.budget.more
        sums = {
            unit: None if each is None else max(-(-self._missing(unit) // each), 0) * each
            for unit, each in (("nano_usd", more.nano_usd), ("tokens", more.tokens))
        }
        return Amount(**sums)

    def shown(self) -> dict[str, str]:
        """The figures for people: the cap, what is spent and reserved, what the step may need."""
        usd, stands = self.in_usd, self.standing
        cap = self.limit.held.budget.cap
        added = stands.added_nano_usd if usd else stands.added_tokens
        figures = {
            "budget": ((cap.nano_usd if usd else cap.tokens) or 0) + added,
            "spent": stands.nano_usd if usd else stands.tokens,
            "reserved": stands.reserved_nano_usd if usd else stands.reserved_tokens,
            "needed": self.need.nano_usd if usd else self.need.tokens,
        }
        return {name: show_usd(n) if usd else f"{n:,} tokens" for name, n in figures.items()}


def _room(cap: int, standing: ScopeSums, unit: str) -> int:
    used = getattr(standing, unit) + getattr(standing, f"reserved_{unit}")
    return cap + getattr(standing, f"added_{unit}") - used


def fits(limit: Limit, standing: ScopeSums, need: Need) -> bool:
    """Whether a budget has room for a step."""
    cap = limit.held.budget.cap
    return all(
        most is None or _room(most, standing, unit) >= getattr(need, unit)
        for unit, most in (("nano_usd", cap.nano_usd), ("tokens", cap.tokens))
    )


def judge(
    limits: Sequence[Limit], standings: Mapping[str, ScopeSums], needs: Sequence[Need]
) -> Need | Breach:
    """The first of `needs`, the most generous one first, that fits into every budget.

    Else the budget that the first need breaks which the provider is told the limit of, or the only
    one: a budget that ends the turn before one that asks.
    """
    for need in needs:
        if all(fits(limit, standings.get(limit.scope, UNUSED), need) for limit in limits):
            return need
    least = next((need for need in needs if need.limit is not None), needs[0])
    broken = [each for each in limits if not fits(each, standings.get(each.scope, UNUSED), least)]
    broken.sort(key=lambda limit: limit.held.budget.on_breach != "stop")
    first = broken[0]
    return Breach(limit=first, standing=standings.get(first.scope, UNUSED), need=least)


# Carried out


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """What a step has reserved."""

    need: Need
    scopes: tuple[str, ...]
    used: Usage | None = None
    """What the provider counted, once it has answered."""


async def standings(reader: Reader, limits: Sequence[Limit]) -> dict[str, ScopeSums]:
    """How the scopes of these budgets stand."""
    named = json.dumps([limit.scope for limit in limits])
    rows = await reader.fetch_all("spending_in", {"scopes": named})
    return {row["scope"]: standing_of(row) for row in rows}


def standing_of(row: Row) -> ScopeSums:
    """A row of `spending`."""
    return ScopeSums(**{name: row[name] for name in ScopeSums.__struct_fields__})


async def reserve(
    tx: Transaction,
    turn: TurnRecord,
    limits: Sequence[Limit],
    needs: Sequence[Need],
    *,
    step: int,
    now: float,
    kept: bool = False,
) -> Reservation | Breach:
    """Reserve the most that a step can cost, or say which budget has no room for it.

    What an earlier attempt of the turn reserved and never settled is counted as spent first; but if
    the provider has `kept` the answer of that very call, it is the same one that goes on.
    """
    if kept:
        row = await tx.fetch_one(
            "reservation_of", {"agent": turn.agent_id, "turn": turn.request_id}
        )
        if row is not None and row["step"] == step:
            same = Need(nano_usd=row["nano_usd"], tokens=row["tokens"])
            return Reservation(need=same, scopes=tuple(json.loads(row["scopes"])))
    await close_reservation(tx, (turn.agent_id, turn.request_id), now=now)
    need = judge(limits, await standings(tx, limits), needs)
    if isinstance(need, Breach):
        return need
    sums = {"nano_usd": need.nano_usd, "tokens": need.tokens, "now": now}
    by_scope = {limit.scope: limit for limit in limits}  # dollars and tokens may share one
    for limit in by_scope.values():
        whose = {"scope": limit.scope, "agent": limit.agent, "principal": limit.principal}
        await tx.execute("reserve_spending", {**whose, **sums})
    scopes = tuple(by_scope)
    row = {"agent": turn.agent_id, "turn": turn.request_id, "step": step}
    await tx.execute("insert_reservation", {**row, **sums, "scopes": json.dumps(scopes)})
    return Reservation(need=need, scopes=scopes)


async def close_reservation(
    tx: Transaction, key: tuple[str, str], *, now: float, spent: Amount | None = None
) -> None:
    """Settle what a turn has reserved: with what was `spent`, else with all of it.

    `key` is its agent and its id. Nothing happens if nothing is reserved.
    """
    row = await tx.fetch_one("take_reservation", {"agent": key[0], "turn": key[1]})
    if row is None:
        return
    used: dict[str, Any] = {
        "nano_usd": row["nano_usd"] if spent is None else spent.nano_usd or 0,
        "tokens": row["tokens"] if spent is None else spent.tokens or 0,
    }
    reserved = {"reserved_nano_usd": row["nano_usd"], "reserved_tokens": row["tokens"]}
    await tx.execute("settle_spending", {**used, **reserved, "scopes": row["scopes"], "now": now})


async def close_orphans(
    tx: Transaction, *, limit: int, agent_id: str | None = None, now: float | None = None
) -> int:
    """Count as spent what turns have reserved that are gone or over; a piece of it; how many.

    A turn closes its own reservation when it ends. This finds those whose turn could not: its row
    was erased or unreadable, or its class had no budget any more when it ended.
    """
    about = {"agent": agent_id, "limit": limit}
    return await _close_all(tx, await tx.fetch_all("orphaned_reservations", about), now)


async def close_all_of(tx: Transaction, agent_id: str, *, limit: int) -> int:
    """The same for an agent that goes, whatever its turns do: other agents may share its sums."""
    about = {"agent": agent_id, "limit": limit}
    return await _close_all(tx, await tx.fetch_all("reservations_of_agent", about), None)


async def _close_all(tx: Transaction, rows: Sequence[Row], now: float | None) -> int:
    for row in rows:
        at = row["reserved_at"] if now is None else now
        await close_reservation(tx, (row["agent"], row["turn"]), now=at)
    return len(rows)


async def add_allowance(tx: Transaction, limit: Limit, more: Amount, *, now: float) -> None:
    """Somebody allows more than the budget says."""
    whose = {"scope": limit.scope, "agent": limit.agent, "principal": limit.principal}
    sums = {"nano_usd": more.nano_usd or 0, "tokens": more.tokens or 0, "now": now}
    await tx.execute("add_allowance", {**whose, **sums})


async def drop_old_spending(tx: Transaction, *, before: float, limit: int) -> int:
    """Drop a piece of the sums of turns and days that nobody has added to since then; how many."""
    return await tx.execute("drop_old_spending", {"before": before, "limit": limit})
