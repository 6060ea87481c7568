"""When a turn is parked, and when never (DESIGN §8.16, spec/04 §5.1-5.4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.journal.budget import (
    ASSEMBLE,
    BETWEEN,
    DEATHS,
    MODEL,
    Incident,
    Remains,
    Spent,
    Verdict,
    after_death,
    after_stall,
    describe,
    hook_place,
    progress_of,
    tool_place,
)

TOOL, OTHER = tool_place("pay", "c1"), tool_place("look", "c2")
HOOK = hook_place("before_step", "Agent.before_step")
PLACES = (TOOL, OTHER, HOOK, MODEL, ASSEMBLE)
MANY = 1000


class Life:
    """A turn over several lives of its process."""

    def __init__(self, max_attempts: int = MANY) -> None:
        self.max_attempts = max_attempts
        self.incident = Incident().begun(1, 0, first=True)
        self.boot = 1
        self.progress = 0
        self.spent: Spent | None = None

    def dies(self, *places: str, said: int = 0, settled: frozenset[str] = frozenset()) -> None:
        """The attempt makes `said` units of progress, goes to the places, and takes all down."""
        if self.incident.places is not None:
            self.incident = msgspec.structs.replace(self.incident, places=places)
        self.progress += said
        running = [place for place in places if place.startswith("tool:")]
        found = Remains(progress=self.progress, running=running, settled=settled)
        self._go_on(after_death(self.incident, found, max_attempts=self.max_attempts, now=5.0))

    def stops(self) -> None:
        """A planned stop: nobody asks the budget."""
        self._go_on(self.incident)

    def stalls(self, step: int = 0) -> None:
        self._go_on(after_stall(self.incident, step, max_attempts=self.max_attempts))

    def _go_on(self, verdict: Verdict) -> None:
        if isinstance(verdict, Spent):
            self.spent = verdict
            return
        self.boot += 1
        self.incident = verdict.begun(self.boot, self.progress)
        encoded = msgspec.json.encode(self.incident)
        assert msgspec.json.decode(encoded, type=Incident) == self.incident


class TestThreeDeathsAtOnePlace:
    @given(st.sampled_from(PLACES), st.integers(0, 3))
    def test_always_park_whatever_the_first_attempt_had_said(self, place: str, said: int):
        life = Life()
        life.dies(place, said=said)
        life.dies(place)
        assert life.spent is None
        life.dies(place)
        assert life.spent == Spent(places=(place,), count=DEATHS)

    def test_name_every_call_that_ran_each_time_the_last_one_first(self):
        life = Life()
        for _ in range(3):
            life.dies(TOOL, OTHER)
        assert life.spent is not None
        assert life.spent.places == (OTHER, TOOL)
        assert "pay (call c1)" in life.spent.reason

    def test_park_where_nothing_is_marked(self):
        life = Life()
        for _ in range(3):
            life.dies()
        assert life.spent is not None
        assert "no progress" in life.spent.reason

    def test_a_call_that_has_its_result_is_no_place_any_more(self):
        life = Life()
        life.dies(TOOL)
        life.dies(TOOL)
        life.dies(TOOL, said=1, settled=frozenset({TOOL}))
        assert life.spent is None
        assert dict(life.incident.deaths) == {BETWEEN: 1}


class TestNeverParked:
    @given(st.lists(st.sampled_from(PLACES), max_size=30))
    def test_a_turn_that_makes_progress_between_kills(self, places: list[str]):
        life = Life()
        for place in places:
            life.dies(place, said=1)
        assert life.spent is None

    @given(st.integers(1, 20))
    def test_a_turn_whose_calls_end_between_kills(self, kills: int):
        life = Life()
        for number in range(kills):
            life.dies(tool_place("work", f"c{number // 2}"), said=1)
        assert life.spent is None

    @given(st.lists(st.sampled_from(PLACES), max_size=20))
    def test_a_turn_that_never_dies_at_the_same_place_twice_in_a_row(self, places: list[str]):
        life = Life()
        last = None
        for place in places:
            if place != last:
                life.dies(place, said=0)
            last = place
        assert life.spent is None

    @given(st.sampled_from(PLACES), st.integers(1, 30))
    def test_a_turn_that_planned_stops_cut(self, place: str, stops: int):
        life = Life()
        life.dies(place)
        for _ in range(stops):
            life.stops()
        life.dies(place)
        assert life.spent is None

    def test_a_model_call_that_brings_text_counts_as_a_new_one(self):
        life = Life()
        for said in (1, 0, 1, 0, 0):
            life.dies(MODEL, said=said)
        assert life.spent is None


class TestAttemptsInARow:
    def test_without_progress_at_ever_other_places_end_too(self):
        life = Life(max_attempts=4)
        for number in range(5):
            life.dies(PLACES[number % 2])
        assert life.spent == Spent(places=(BETWEEN,), count=5)

    @pytest.mark.parametrize("said", [0, 1])
    def test_one_allowed_means_one_whatever_was_said_before_the_first_death(self, said: int):
        life = Life(max_attempts=1)
        life.dies(MODEL, said=said)
        assert life.spent is None
        life.dies(MODEL)
        assert life.spent == Spent(places=(BETWEEN,), count=2)

    def test_none_allowed_means_none(self):
        life = Life(max_attempts=0)
        life.dies(MODEL, said=1)
        assert life.spent is not None

    def test_the_time_of_the_first_is_kept_until_there_is_progress(self):
        life = Life()
        life.dies(MODEL)
        assert life.incident.since == 5.0
        life.dies(MODEL, said=1)
        assert life.incident.since is None


class TestStalls:
    @given(st.integers(0, 10))
    def test_in_one_step_use_the_budget_up_whatever_words_came_between(self, allowed: int):
        life = Life(max_attempts=allowed)
        for _ in range(allowed):
            life.progress += 2
            life.stalls()
        assert life.spent is None
        life.stalls()
        assert life.spent is not None

    def test_a_finished_step_begins_the_count_anew(self):
        life = Life(max_attempts=2)
        for step in range(5):
            life.stalls(step)
            life.stalls(step)
        assert life.spent is None


class TestProgress:
    @pytest.mark.parametrize(
        "chunk",
        [
            {"type": "start"},
            {"type": "start-step"},
            {"type": "finish-step"},
            {"type": "text-start", "id": "t"},
            {"type": "reasoning-delta", "id": "r", "delta": "hm"},
            {"type": "tool-input-start", "toolCallId": "c"},
            {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{"},
            {"type": "tool-input-error", "toolCallId": "c"},
            {"type": "tool-output-available", "toolCallId": "c", "preliminary": True},
        ],
    )
    def test_what_the_next_attempt_makes_again_is_none(self, chunk: dict[str, Any]):
        assert progress_of([chunk], 0) == 0

    def test_text_calls_and_results_are(self):
        chunks = [
            {"type": "text-delta", "id": "t", "delta": "x"},
            {"type": "tool-input-available", "toolCallId": "c"},
            {"type": "tool-output-available", "toolCallId": "c"},
            {"type": "tool-output-error", "toolCallId": "d"},
        ]
        assert progress_of(chunks, 1) == 5


def test_the_boots_of_the_last_two_attempts_are_kept():
    incident = Incident().begun(1, 0, first=True)
    assert incident.begun(1, 0).boots == (1,)
    assert incident.begun(2, 0).begun(5, 0).boots == (2, 5)


def test_places_have_names_for_people():
    assert describe(HOOK) == "the hook Agent.before_step (before_step)"
    assert describe(MODEL) == "the model call"


def test_a_turn_that_has_not_begun_has_nothing_against_it():
    fresh = Incident()
    assert (fresh.progress, fresh.barren, fresh.stalls, fresh.stalled_step) == (0, 0, 0, 0)


def test_an_attempt_of_the_same_life_is_not_another_life():
    assert Incident(boots=(1, 2)).begun(2, 0).boots == (1, 2)
    assert Incident(boots=(1, 2)).begun(3, 0).boots == (2, 3)


def test_a_death_after_progress_is_remembered_where_it_may_come_again():
    incident, found = Incident(places=(TOOL,)), Remains(progress=1)
    verdict = after_death(incident, found, max_attempts=MANY, now=5.0)
    assert isinstance(verdict, Incident)
    assert (verdict.since, verdict.barren, dict(verdict.deaths)) == (5.0, 1, {TOOL: 1})


def test_a_model_call_that_brought_text_is_not_held_against_the_turn():
    incident, found = Incident(places=(MODEL,), since=1.0), Remains(progress=1)
    verdict = after_death(incident, found, max_attempts=MANY, now=5.0)
    assert isinstance(verdict, Incident)
    assert verdict.since is None
