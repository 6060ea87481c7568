"""When a timetable comes next, against a model that looks at every minute (spec/04 §11.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkwell.core.errors import ScheduleError
from thinkwell.features.schedules.cron import check_cron, next_cron
from thinkwell.features.schedules.occurrences import next_occurrence
from thinkwell.features.schedules.timetable import (
    IntervalTimetable,
    WallClockTimetable,
    parse_timetable,
)

ZONES = (
    "UTC",
    "Europe/London",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "America/Santiago",  # at midnight
    "Africa/Casablanca",  # for a month
    "Asia/Kathmandu",  # never
)
CHANGES = {
    "Europe/London": ["2026-03-29T01:00Z", "2026-10-25T01:00Z"],
    "America/New_York": ["2026-03-08T07:00Z", "2026-11-01T06:00Z"],
    "Australia/Lord_Howe": ["2026-04-04T15:00Z", "2026-10-03T15:30Z"],
    "America/Santiago": ["2026-04-05T03:00Z", "2026-09-06T04:00Z"],
    "Africa/Casablanca": ["2026-02-15T02:00Z", "2026-03-22T02:00Z"],
}


def at(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.parametrize(
    ("text", "now", "then"),
    [
        ("every day at 01:30 in europe/LONDON", "2026-03-28T12:00Z", "2026-03-29T01:00Z"),
        ("every day at 01:30 in europe/LONDON", "2026-03-29T01:00Z", "2026-03-30T00:30Z"),
        ("every day at 01:30 in europe/LONDON", "2026-10-24T12:00Z", "2026-10-25T00:30Z"),
        ("every day at 01:30 in europe/LONDON", "2026-10-25T00:30Z", "2026-10-26T01:30Z"),
        ("every day at 01:30 in europe/LONDON", "2026-10-25T01:10Z", "2026-10-26T01:30Z"),
        ("every weekday at 09:00 in UTC", "2026-11-20T09:00Z", "2026-11-23T09:00Z"),
        ("every week on sat at 00:00 in UTC", "2026-11-17T00:00Z", "2026-11-21T00:00Z"),
        # A day that Samoa left out.
        ("every day at 09:00 in Pacific/Apia", "2011-12-29T20:00Z", "2011-12-30T10:00Z"),
        ("every day at 09:00 in Pacific/Apia", "2011-12-30T10:00Z", "2011-12-30T19:00Z"),
    ],
)
def test_gaps_and_overlaps_of_the_clock(text: str, now: str, then: str):
    """spec/04 §23.57"""
    assert next_occurrence(parse_timetable(text), at(now)) == at(then)


def minutes_shown(zone: str, start: float, hours: int) -> list[tuple[float, datetime]]:
    """Every minute from `start` on, and what a clock in the zone shows then."""
    first = start - start % 60
    moments = [first + 60 * n for n in range(hours * 60)]
    return [(m, datetime.fromtimestamp(m, ZoneInfo(zone)).replace(tzinfo=None)) for m in moments]


def model(wall: WallClockTimetable, after: float, hours: int) -> float | None:
    """Look at every minute: the first that shows the time, or by which it has been jumped over."""
    assert wall.zone is not None
    before: datetime | None = None
    shown_latest = datetime(1, 1, 1)  # noqa: DTZ001 - what a clock on the wall shows
    for moment, shown in minutes_shown(wall.zone, after - 48 * 3600, hours + 48):
        wanted = [
            datetime(day.year, day.month, day.day, wall.hour, wall.minute)  # noqa: DTZ001
            for day in {shown.date(), (before or shown).date()}
            if day.weekday() in wall.days
        ]
        jumped = [w for w in wanted if before is not None and before < w <= shown]
        fresh = [w for w in jumped if w > shown_latest]
        shown_latest = max(shown_latest, shown)
        before = shown
        if fresh and moment > after:
            return moment
    return None


NEAR = st.one_of(
    *(
        st.tuples(st.just(zone), st.floats(-30 * 3600, 6 * 3600).map(lambda s, c=change: at(c) + s))
        for zone, changes in CHANGES.items()
        for change in changes
    ),
    st.tuples(st.sampled_from(ZONES), st.floats(1.7e9, 1.9e9)),
)


@settings(max_examples=150, deadline=None)
@given(NEAR, st.frozensets(st.integers(0, 6), min_size=5), st.integers(0, 23), st.integers(0, 59))
def test_a_wall_clock_comes_when_the_model_says(
    near: tuple[str, float], days: frozenset[int], hour: int, minute: int
):
    zone, now = near
    wall = WallClockTimetable(days, hour, minute, zone)
    expected = model(wall, now, 96)
    assert next_occurrence(wall, now) == expected


@settings(max_examples=100, deadline=None)
@given(NEAR, st.integers(0, 3), st.integers(0, 59))
def test_a_series_has_one_time_for_each_day_and_none_twice(
    near: tuple[str, float], hour: int, minute: int
):
    zone, now = near
    wall = WallClockTimetable(frozenset(range(7)), hour, minute, zone)
    times = [next_occurrence(wall, now)]
    for _ in range(6):
        times.append(next_occurrence(wall, now, times[-1]))
    assert times == sorted(set(times))
    days = [datetime.fromtimestamp(t, ZoneInfo(zone)).date() for t in times]
    assert days == [days[0] + timedelta(days=n) for n in range(7)]


@given(
    st.integers(1, 600),
    st.floats(1e9, 2e9),
    st.floats(-1e7, 1e7),
)
def test_an_interval_keeps_its_phase_and_makes_nothing_up(
    count: int, previous: float, since: float
):
    interval, now = IntervalTimetable(count, "minute"), previous + since
    then = next_occurrence(interval, now, previous)
    step = interval.seconds
    assert then > now
    assert then >= previous + step - 1e-3
    assert then - max(now, previous) <= step + 1e-3
    assert round((then - previous) / step) * step == pytest.approx(then - previous, abs=1e-3)


@given(st.floats(1e9, 2e9))
def test_an_interval_without_a_time_before_begins_now(now: float):
    assert next_occurrence(IntervalTimetable(2, "hour"), now) == now + 7200


@given(NEAR, st.floats(0, 1e7))
def test_a_clock_that_steps_back_repeats_nothing(near: tuple[str, float], back: float):
    zone, previous = near
    wall = WallClockTimetable(frozenset(range(7)), 9, 0, zone)
    assert next_occurrence(wall, previous - back, previous) > previous


# Cron


CRONS = ("30 1 * * *", "0 2 * * *", "15,45 0-3 * * 1-5", "*/30 1 * * *", "0 9 1 * *", "5 * * * *")


@settings(max_examples=100, deadline=None)
@given(NEAR, st.sampled_from(CRONS))
def test_a_cron_series_goes_forward_and_names_no_local_time_twice(
    near: tuple[str, float], cron: str
):
    """A library that repeats the hour of the autumn change runs a daily job twice."""
    zone, now = near
    times = [next_cron(cron, zone, now)]
    for _ in range(8):
        times.append(next_cron(cron, zone, times[-1]))
    assert times == sorted(set(times))
    assert times[0] > now
    if not cron.startswith("5 *"):  # that one is every hour, whatever it is called
        shown = [datetime.fromtimestamp(t, ZoneInfo(zone)).replace(tzinfo=None) for t in times]
        assert len(set(shown)) == len(shown)


@settings(max_examples=100, deadline=None)
@given(NEAR, st.integers(0, 23), st.integers(0, 59))
def test_a_daily_cron_comes_when_the_grammar_says(near: tuple[str, float], hour: int, minute: int):
    """The same rules as §11.2 for gaps and overlaps."""
    zone, now = near
    wall = WallClockTimetable(frozenset(range(7)), hour, minute, zone)
    assert next_cron(f"{minute} {hour} * * *", zone, now) == next_occurrence(wall, now)


def test_sunday_is_day_0():
    assert next_cron("0 0 * * 0", "UTC", at("2026-11-17T00:00Z")) == at("2026-11-22T00:00Z")


@pytest.mark.parametrize(
    "wrong", ["", "0 9 * *", "0 9 * * * *", "60 9 * * *", "0 9 31 2 *", "@daily", "a b c d e", 5]
)
def test_a_wrong_cron_expression_is_refused(wrong: object):
    with pytest.raises(ScheduleError, match=r"five fields"):
        check_cron(wrong)


def test_times_are_moments_not_local_times():
    moment = next_occurrence(parse_timetable("every day at 09:00 in Asia/Tokyo"), 0.0)
    assert datetime.fromtimestamp(moment, UTC).hour == 0
