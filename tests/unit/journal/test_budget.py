"""When an interrupted turn goes on, and when it is given up (DESIGN §8.16, spec/04 §5.1-5.4,
§23 cases 25-29, 40)."""

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
    WAITING,
    Decision,
    GivenUp,
    GoOn,
    Incident,
    Interruption,
    RecoveryBudget,
    decide,
    describe,
    hook_place,
    progress_of,
    tool_place,
    work_of,
)

TOOL, OTHER = tool_place("pay", "c1"), tool_place("look", "c2")
HOOK = hook_place("before_step", "Agent.before_step")
PLACES = (TOOL, OTHER, HOOK, MODEL, ASSEMBLE)
MANY = 1000


class Life:
    """A turn over several lives of its process."""

    def __init__(self, max_attempts: int = MANY, **budget: float) -> None:
        self.budget = RecoveryBudget(max_attempts=max_attempts, **budget)
        self.incident = Incident().begun(1, 0, first=True)
        self.boot = 1
        self.progress = 0
        self.work = 0
        self.now = 5.0
        self.decision: Decision | None = None

    @property
    def given_up(self) -> GivenUp | None:
        return self.decision if isinstance(self.decision, GivenUp) else None

    @property
    def reason(self) -> str | None:
        return None if self.given_up is None else self.given_up.reason

    @property
    def used(self) -> int:
        assert isinstance(self.decision, GoOn)
        return self.decision.used

    def dies(
        self,
        *places: str,
        said: int = 0,
        worked: int = 0,
        settled: frozenset[str] = frozenset(),
        wanted: bool = True,
    ) -> None:
        """The attempt makes `said` units of progress, goes to the places, and takes all down."""
        if self.incident.places is not None:
            self.incident = msgspec.structs.replace(self.incident, places=places)
        self.progress += said
        self.work += worked
        running = [place for place in places if place.startswith("tool:")]
        self._judge(
            Interruption(
                cause="death",
                progress=self.progress,
                milestones=self.work,
                running=running,
                settled=settled,
            ),
            wanted=wanted,
        )

    def stops(self, *, wanted: bool = True) -> None:
        """A planned stop."""
        found = Interruption(cause="stop", progress=self.progress, milestones=self.work)
        self._judge(found, wanted=wanted)

    def stalls(self, step: int = 0) -> None:
        found = Interruption(cause="stall", progress=self.progress, milestones=self.work, step=step)
        self._judge(found)

    def _judge(self, found: Interruption, *, wanted: bool = True) -> None:
        self.decision = decide(self.incident, found, self.budget, self.now, wanted=wanted)
        if isinstance(self.decision, GivenUp):
            return
        self.boot += 1
        self.incident = self.decision.incident.begun(self.boot, self.progress, milestones=self.work)
        encoded = msgspec.json.encode(self.incident)
        assert msgspec.json.decode(encoded, type=Incident) == self.incident


class TestThreeDeathsAtOnePlace:
    @given(st.sampled_from(PLACES), st.integers(0, 3))
    def test_always_park_whatever_the_first_attempt_had_said(self, place: str, said: int):
        life = Life()
        life.dies(place, said=said)
        life.dies(place)
        assert life.given_up is None
        life.dies(place)
        assert (life.reason, life.given_up and life.given_up.places) == ("crash_loop", (place,))
        assert life.given_up is not None
        assert life.given_up.count == DEATHS

    def test_name_every_call_that_ran_each_time_the_last_one_first(self):
        life = Life()
        for _ in range(3):
            life.dies(TOOL, OTHER)
        assert life.given_up is not None
        assert life.given_up.places == (OTHER, TOOL)
        assert "pay (call c1)" in life.given_up.text

    def test_park_where_nothing_is_marked(self):
        life = Life()
        for _ in range(3):
            life.dies()
        assert life.given_up is not None
        assert "no progress" in life.given_up.text

    def test_a_call_that_has_its_result_is_no_place_any_more(self):
        life = Life()
        life.dies(TOOL)
        life.dies(TOOL)
        life.dies(TOOL, said=1, settled=frozenset({TOOL}))
        assert life.given_up is None
        assert dict(life.incident.deaths) == {BETWEEN: 1}


class TestNeverParked:
    @given(st.lists(st.sampled_from(PLACES), max_size=30))
    def test_a_turn_that_makes_progress_between_kills(self, places: list[str]):
        life = Life()
        for place in places:
            life.dies(place, said=1)
        assert life.given_up is None

    @given(st.integers(1, 20))
    def test_a_turn_whose_calls_end_between_kills(self, kills: int):
        life = Life()
        for number in range(kills):
            life.dies(tool_place("work", f"c{number // 2}"), said=1)
        assert life.given_up is None

    @given(st.lists(st.sampled_from(PLACES), max_size=20))
    def test_a_turn_that_never_dies_at_the_same_place_twice_in_a_row(self, places: list[str]):
        life = Life()
        last = None
        for place in places:
            if place != last:
                life.dies(place, said=0)
            last = place
        assert life.given_up is None

    @given(st.sampled_from(PLACES), st.integers(1, 30))
    def test_a_turn_that_planned_stops_cut(self, place: str, stops: int):
        life = Life()
        life.dies(place)
        for _ in range(stops):
            life.stops()
        life.dies(place)
        assert life.given_up is None

    @given(st.sampled_from(PLACES), st.integers(1, 30))
    def test_a_turn_that_only_waited_for_its_model(self, place: str, deaths: int):
        life = Life(max_attempts=2, no_progress_timeout=10.0)
        life.dies(place)
        for _ in range(deaths):
            life.now += 100.0
            life.dies(WAITING)
            assert life.used == 1
        life.dies(place)
        assert life.given_up is None
        life.dies(place)
        assert life.reason == "crash_loop"

    def test_a_model_call_that_brings_text_counts_as_a_new_one(self):
        life = Life()
        for said in (1, 0, 1, 0, 0):
            life.dies(MODEL, said=said)
        assert life.given_up is None


class TestAttemptsInARow:
    def test_without_progress_at_ever_other_places_end_too(self):
        life = Life(max_attempts=4)
        for number in range(5):
            life.dies(PLACES[number % 2])
        assert (life.reason, life.given_up and life.given_up.count) == ("max_attempts_exceeded", 5)

    @pytest.mark.parametrize("said", [0, 1])
    def test_one_allowed_means_one_whatever_was_said_before_the_first_death(self, said: int):
        life = Life(max_attempts=1)
        life.dies(MODEL, said=said)
        assert life.given_up is None
        life.dies(MODEL)
        assert (life.reason, life.given_up and life.given_up.count) == ("max_attempts_exceeded", 2)

    def test_none_allowed_means_none(self):
        life = Life(max_attempts=0)
        life.dies(MODEL, said=1)
        assert life.given_up is not None

    def test_case_25_eleven_interruptions_without_progress_are_one_too_many(self):
        life = Life(max_attempts=10, no_progress_timeout=3600)
        for number in range(10):
            life.now += 31
            life.dies(PLACES[number % 2])
            assert life.used == number + 1
        life.now += 31
        life.dies(PLACES[0])
        assert life.reason == "max_attempts_exceeded"


class TestNoProgressForTooLong:
    def test_case_25_26_ends_the_turn_however_many_attempts_are_left(self):
        life = Life(no_progress_timeout=300)
        life.dies(TOOL)
        life.now += 300
        life.dies(OTHER)
        assert life.reason is None
        life.now += 1
        life.dies(TOOL)
        assert life.reason == "no_progress_timeout"

    def test_progress_begins_the_time_anew(self):
        life = Life(no_progress_timeout=300)
        for _ in range(10):
            life.now += 250
            life.dies(MODEL, said=1)
        assert life.reason is None
        assert life.incident.since == life.now

    def test_the_first_interruption_never_does_however_long_the_process_was_down(self):
        life = Life(no_progress_timeout=0)
        life.now += 1_000_000
        life.dies(MODEL)
        assert life.reason is None

    def test_the_time_of_a_planned_stop_does_not_count(self):
        """Somebody stopped the server in the evening and started it in the morning."""
        life = Life(no_progress_timeout=300)
        life.dies(TOOL)
        life.now += 40_000
        life.stops()
        life.dies(OTHER)
        assert life.reason is None

    def test_a_turn_that_was_only_stopped_has_no_incident(self):
        life = Life()
        life.stops()
        assert (life.incident.since, life.used) == (None, 0)

    def test_a_clock_that_steps_back_gives_up_nothing(self):
        life = Life(no_progress_timeout=300)
        life.dies(TOOL)
        life.now -= 1_000_000
        life.dies(OTHER)
        assert life.reason is None


class TestWork:
    def test_case_27_a_turn_that_gets_on_is_given_up_exactly_when_it_has_done_too_much(self):
        life = Life(max_recovery_work=1000)
        life.dies(MODEL, said=1, worked=500)
        assert (life.incident.work, life.used) == (0, 1)
        for done in range(1, 1001):
            life.dies(MODEL, said=1, worked=1)
            assert (life.reason, life.incident.work, life.used) == (None, done, 1)
        life.dies(MODEL, said=1, worked=1)
        assert life.reason == "work_budget_exceeded"

    def test_words_in_a_text_that_had_begun_are_work_too(self):
        life = Life(max_recovery_work=2)
        life.dies(MODEL, said=1)
        for _ in range(2):
            life.dies(MODEL, said=5)
        assert life.reason is None
        life.dies(MODEL, said=5)
        assert life.reason == "work_budget_exceeded"

    def test_what_a_model_does_between_stalls_counts(self):
        life = Life(max_recovery_work=3)
        for step in range(4):
            life.work += 1
            life.stalls(step)
        assert life.reason is None
        life.work += 1
        life.stalls(4)
        assert life.reason == "work_budget_exceeded"

    def test_infinity_is_no_limit(self):
        life = Life(max_recovery_work=float("inf"))
        for _ in range(50):
            life.dies(MODEL, said=1, worked=10_000)
        assert life.reason is None

    @pytest.mark.parametrize(
        ("chunk", "counts"),
        [
            ({"type": "text-start", "id": "t"}, 1),
            ({"type": "reasoning-start", "id": "t"}, 1),
            ({"type": "tool-input-available", "toolCallId": "c"}, 1),
            ({"type": "tool-output-available", "toolCallId": "c"}, 1),
            ({"type": "tool-output-available", "toolCallId": "c", "preliminary": True}, 0),
            ({"type": "tool-output-error", "toolCallId": "c"}, 1),
            ({"type": "tool-output-denied", "toolCallId": "c"}, 1),
            ({"type": "text-delta", "id": "t", "delta": "x"}, 0),
            ({"type": "start-step"}, 0),
        ],
    )
    def test_is_counted_in_things_that_begin_or_end(self, chunk: dict[str, Any], counts: int):
        assert work_of([chunk]) == counts


class TestTheAppRefuses:
    def test_case_29_from_the_second_interruption_on(self):
        life = Life()
        life.dies(TOOL, wanted=False)
        assert isinstance(life.decision, GoOn)
        assert not life.decision.asks
        life.dies(OTHER)
        assert isinstance(life.decision, GoOn)
        assert life.decision.asks
        life.dies(TOOL, wanted=False)
        assert life.reason == "recovery_aborted"

    def test_a_planned_stop_is_nothing_to_refuse(self):
        life = Life()
        life.dies(TOOL)
        life.stops(wanted=False)
        assert isinstance(life.decision, GoOn)
        assert not life.decision.asks

    def test_a_reason_of_the_budget_comes_first_except_the_number_of_attempts(self):
        life = Life(max_attempts=1)
        life.dies(TOOL)
        life.dies(OTHER, wanted=False)
        assert life.reason == "recovery_aborted"
        loop = Life()
        loop.dies(TOOL)
        loop.dies(TOOL)
        loop.dies(TOOL, wanted=False)
        assert loop.reason == "crash_loop"


class TestPlannedStops:
    @given(st.integers(1, 50))
    def test_case_39_use_no_attempt_and_change_nothing_that_counts(self, stops: int):
        life = Life(max_attempts=1)
        life.dies(MODEL)
        before = life.incident
        for _ in range(stops):
            life.stops()
            assert life.used == 1
        counted = ("barren", "deaths", "stalls", "work")
        assert [getattr(life.incident, name) for name in counted] == [
            getattr(before, name) for name in counted
        ]

    def test_none_allowed_means_none_after_a_death_and_any_after_a_stop(self):
        life = Life(max_attempts=0)
        life.stops()
        assert life.reason is None


def test_case_40_a_turn_may_be_tried_anew_and_continued_later_on_one_count():
    incident, budget = Incident().begun(1, 0, first=True), RecoveryBudget()
    nothing = Interruption(cause="death", said=False)
    first = decide(incident, nothing, budget, 5.0)
    assert isinstance(first, GoOn)
    begun = first.incident.begun(2, 0)
    second = decide(begun, Interruption(cause="death", said=True), budget, 6.0)
    assert isinstance(second, GoOn)
    assert (first.kind, first.used, second.kind, second.used) == ("retry", 1, "continue", 2)


@pytest.mark.parametrize(
    ("reason", "place", "text"),
    [
        ("crash_loop", TOOL, "3 times in a row in the tool pay (call c1)"),
        ("crash_loop", BETWEEN, "made no progress"),
        ("max_attempts_exceeded", BETWEEN, "made no progress"),
        ("max_attempts_exceeded", MODEL, "fell silent 3 times"),
        ("work_budget_exceeded", BETWEEN, "again and again"),
        ("no_progress_timeout", MODEL, "no progress for too long"),
        ("recovery_aborted", BETWEEN, "should_keep_recovering"),
    ],
)
def test_every_reason_has_a_sentence_for_operators(reason: Any, place: str, text: str):
    given_up = GivenUp(reason=reason, incident=Incident(), count=3, places=(place,))
    assert text in given_up.text


class TestStalls:
    @given(st.integers(0, 10))
    def test_in_one_step_use_the_budget_up_whatever_words_came_between(self, allowed: int):
        life = Life(max_attempts=allowed)
        for _ in range(allowed):
            life.progress += 2
            life.stalls()
        assert life.given_up is None
        life.stalls()
        assert life.given_up is not None

    def test_a_finished_step_begins_the_count_anew(self):
        life = Life(max_attempts=2)
        for step in range(5):
            life.stalls(step)
            life.stalls(step)
        assert life.given_up is None


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
    incident, found = Incident(places=(TOOL,)), Interruption(cause="death", progress=1)
    decision = decide(incident, found, RecoveryBudget(), 5.0)
    assert isinstance(decision, GoOn)
    after = decision.incident
    assert (after.since, after.barren, dict(after.deaths)) == (5.0, 1, {TOOL: 1})


def test_a_model_call_that_brought_text_is_not_held_against_the_turn():
    incident = Incident(places=(MODEL,), since=1.0)
    decision = decide(incident, Interruption(cause="death", progress=1), RecoveryBudget(), 5.0)
    assert isinstance(decision, GoOn)
    assert dict(decision.incident.deaths) == {MODEL: 0}


def test_what_is_given_up_says_so_on_its_incident():
    decision = decide(Incident(), Interruption(cause="stall"), RecoveryBudget(max_attempts=0), 5.0)
    assert isinstance(decision, GivenUp)
    assert (decision.incident.exhausted, decision.places) == ("max_attempts_exceeded", (MODEL,))
