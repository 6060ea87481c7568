"""The grammar of declared tasks (spec/04 §11.1, §23.56, §23.57)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.core.errors import ScheduleError
from thinkwell.features.schedules.every import every
from thinkwell.features.schedules.timetable import (
    DAYS,
    EVERY_DAY,
    WEEKDAYS,
    IntervalTimetable,
    Timetable,
    WallClockTimetable,
    parse_timetable,
    zoned,
)

ZONES = ("UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Etc/GMT+5")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("every 1 minute", IntervalTimetable(1, "minute")),
        ("every 15 minutes", IntervalTimetable(15, "minute")),
        ("  Every   2 HOURS ", IntervalTimetable(2, "hour")),
        ("every day at 09:00", WallClockTimetable(EVERY_DAY, 9, 0)),
        ("every weekday at 23:59 in UTC", WallClockTimetable(WEEKDAYS, 23, 59, "UTC")),
        (
            "every week on mon,Thursday , sun at 07:30 in europe/berlin",
            WallClockTimetable(frozenset({0, 3, 6}), 7, 30, "Europe/Berlin"),
        ),
        (
            "every day at 01:30 in europe/LONDON",
            WallClockTimetable(EVERY_DAY, 1, 30, "Europe/London"),
        ),
    ],
)
def test_what_the_grammar_has_is_read(text: str, meant: Timetable):
    assert parse_timetable(text) == meant


WRONG = {
    "": "does not begin with `every`",
    "weekdays at 09:00 in UTC": "does not begin with `every`",
    "every minute": "Write `every 1 minute`",
    "every hours": "Write `every 1 hour`",
    "every 0 minutes": "begins with 1 to 9",
    "every 05 minutes": "begins with 1 to 9",
    "every 1 minutes": "Write `every 1 minute`",
    "every 2 hour": "Write `every 2 hours`",
    "every 5 days": "minutes or hours",
    "every 99999999999999 hours": "at most a year",
    "every ١ minute": "characters that no schedule has",
    "every 5 minutes in UTC": "an interval has no time zone",
    "every day": "does not say when",
    "every weekday at 9:00 in UTC": "two digits each",
    "every day at 24:00 in UTC": "there is no time 24:00",
    "every day at 12:60 in UTC": "there is no time 12:60",
    "every day at noon in UTC": "is no time",
    "every weekdya at 09:00 in UTC": "did you mean 'weekday'",
    "every monday at 09:00 in UTC": "Write `every week on monday at 09:00 in utc`",
    "every week on mondy at 09:00 in UTC": "did you mean 'monday'",
    "every week on mon, monday at 09:00 in UTC": "names a day twice",
    "every week on mon,, tue at 09:00 in UTC": "'' is no day",
    "every week on mon tue at 09:00 in UTC": "is no day",
    "every day at 09:00 in Europe/Berlni": "There is no time zone 'Europe/Berlni'",
    "every day at 09:00 in 5th Avenue": "is no time zone",
    "every day at 09:00": "names no time zone",
    "every day at 09:00 in ../../etc/passwd": "is no time zone",
}


@pytest.mark.parametrize("text", WRONG)
def test_every_mistake_is_refused_with_its_text_and_what_to_write(text: str):
    """spec/04 §23.56"""
    with pytest.raises(ScheduleError) as refused:
        zoned(text)
    said = str(refused.value)
    assert repr(text) in said
    assert WRONG[text].lower() in said.lower()
    assert "Write " in said


@pytest.mark.parametrize("wrong", [None, 5, b"every day", ["every day at 09:00"]])
def test_what_is_no_text_is_refused(wrong: object):
    with pytest.raises(ScheduleError, match="is no schedule"):
        parse_timetable(wrong)


def test_the_zone_is_the_one_in_the_text_then_the_tasks_then_the_default():
    assert str(zoned("every day at 09:00 in UTC", None, "Asia/Tokyo")).endswith("in UTC")
    assert str(zoned("every day at 09:00", "asia/tokyo", "UTC")).endswith("in Asia/Tokyo")
    assert str(zoned("every day at 09:00", None, "UTC")).endswith("in UTC")


def test_a_zone_that_is_said_twice_has_to_be_the_same():
    same = zoned("every day at 09:00 in europe/london", "Europe/LONDON")
    assert str(same) == "every day at 09:00 in Europe/London"
    with pytest.raises(ScheduleError, match="Say it once"):
        zoned("every day at 09:00 in Europe/London", "UTC")


def test_an_interval_takes_no_zone_but_does_not_mind_a_default():
    assert zoned("every 5 minutes", None, "UTC") == IntervalTimetable(5, "minute")
    with pytest.raises(ScheduleError, match="an interval has no time zone"):
        zoned("every 5 minutes", "UTC")


@pytest.mark.parametrize("zone", [5, "", "Mars/Base", object()])
def test_a_zone_that_is_none_is_refused(zone: object):
    with pytest.raises(ScheduleError):
        zoned("every day at 09:00", zone)


TIMETABLES = st.one_of(
    st.builds(IntervalTimetable, st.integers(1, 8000), st.sampled_from(["minute", "hour"])),
    st.builds(
        WallClockTimetable,
        st.frozensets(st.integers(0, 6), min_size=1),
        st.integers(0, 23),
        st.integers(0, 59),
        st.sampled_from([None, *ZONES]),
    ),
)


@given(TIMETABLES)
def test_the_text_of_a_timetable_reads_as_the_same_one(timetable: Timetable):
    assert parse_timetable(str(timetable)) == timetable
    assert parse_timetable(str(timetable).upper().replace(" ", "  ")) == timetable


@given(st.text())
def test_any_other_text_is_refused_and_never_breaks_the_parser(text: str):
    with suppress(ScheduleError):
        assert parse_timetable(parse_timetable(text))


def test_the_typed_form_gives_the_timetables_of_the_texts():
    assert every.weekday.at(9, 30, "europe/berlin") == parse_timetable(
        "every weekday at 09:30 in Europe/Berlin"
    )
    assert every.day.at(9) == parse_timetable("every day at 09:00")
    assert every.week_on("mon", "thu").at(23, 59) == parse_timetable(
        "every week on mon, thu at 23:59"
    )
    assert every.minutes(15) == parse_timetable("every 15 minutes")
    assert (every.minute, every.hour) == (every.minutes(1), every.hours(1))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: every.day.at(24),  # pyright: ignore[reportArgumentType]
        lambda: every.day.at(9, 60),  # pyright: ignore[reportArgumentType]
        lambda: every.day.at("09:00"),  # pyright: ignore[reportArgumentType]
        lambda: every.day.at(True),  # pyright: ignore[reportArgumentType]
        lambda: every.day.at(9, 0, "Mars/Base"),
        lambda: every.week_on("monday"),  # pyright: ignore[reportArgumentType]
        lambda: every.week_on("mon", "mon"),
        lambda: every.minutes(0),
        lambda: every.hours(2.5),  # pyright: ignore[reportArgumentType]
        lambda: every.hours(9000),
    ],
)
def test_the_typed_form_refuses_at_run_time_what_no_checker_has_seen(wrong: object):
    assert callable(wrong)
    with pytest.raises(ScheduleError):
        wrong()


def test_days_have_the_names_that_the_error_lists():
    assert DAYS == ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
