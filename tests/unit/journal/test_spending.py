"""The decision about budgets, whatever happens in whatever order (pure)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thinkwell.core.budgets import Budget
from thinkwell.journal.spending import Breach, HeldBudget, Need, ScopeSums, fits, judge, limit_of
from thinkwell.journal.turns import TurnRecord

TURN = TurnRecord(
    agent_id="a/x", request_id="r", trigger="programmatic", status="running", generation=0,
    message_id="m",
)  # fmt: skip
NOW = 1_700_000_000.0


def limit(budget: Budget):
    return limit_of(HeldBudget(budget, "a"), TURN, NOW)


def after(standing: ScopeSums, need: Need, used: int, *, dies: bool) -> ScopeSums:
    """Reserved, then settled with what was used, or with all of it."""
    spent = need.tokens if dies else min(used, need.tokens)
    return ScopeSums(tokens=standing.tokens + spent, added_tokens=standing.added_tokens)


@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000), st.booleans()), max_size=30),
)
def test_spent_and_reserved_never_exceed_the_cap(cap: int, steps: list[tuple[int, int, bool]]):
    at = limit(Budget(tokens=cap, per="agent"))
    standing = ScopeSums()
    for needed, used, dies in steps:
        need = Need(nano_usd=0, tokens=needed)
        got = judge([at], {at.scope: standing}, [need])
        if isinstance(got, Breach):
            assert standing.tokens + needed > cap
            continue
        assert standing.tokens + got.tokens <= cap  # while it is reserved
        standing = after(standing, got, used, dies=dies)
        assert standing.tokens <= cap


@given(st.integers(1, 5000), st.integers(0, 9000), st.integers(0, 9000), st.integers(1, 5000))
def test_what_is_offered_is_a_multiple_of_what_the_author_says_and_enough(
    cap: int, spent: int, needed: int, more: int
):
    budget = Budget(tokens=cap, per="agent", on_breach="ask", more_tokens=more)
    at, need = limit(budget), Need(nano_usd=0, tokens=needed)
    standing = ScopeSums(tokens=spent)
    got = judge([at], {at.scope: standing}, [need])
    if isinstance(got, Breach):
        offered = got.offer().tokens
        assert offered is not None
        assert offered > 0
        assert offered % more == 0
        assert fits(at, ScopeSums(tokens=spent, added_tokens=offered), need)
        if offered > more:
            less = ScopeSums(tokens=spent, added_tokens=offered - more)
            assert not fits(at, less, need)


def test_the_most_generous_need_that_fits_is_taken():
    at = limit(Budget(tokens=100))
    needs = [Need(nano_usd=0, tokens=n, limit=n) for n in (500, 90, 10)]
    assert judge([at], {}, needs) == needs[1]


def test_a_budget_that_stops_comes_before_one_that_asks():
    asks = limit(Budget(tokens=10, per="agent", on_breach="ask"))
    stops = limit(Budget(tokens=10, per="day"))
    got = judge([asks, stops], {}, [Need(nano_usd=0, tokens=11)])
    assert isinstance(got, Breach)
    assert got.limit is stops


def test_a_continuation_of_an_answer_has_no_budget_of_its_own():
    again = TurnRecord(
        agent_id="a/x", request_id="other", trigger="auto-continuation", status="running",
        generation=0, message_id="m", continuation=True,
    )  # fmt: skip
    held = HeldBudget(Budget(tokens=10), "a")
    assert limit_of(held, again, NOW).scope == limit_of(held, TURN, NOW).scope
