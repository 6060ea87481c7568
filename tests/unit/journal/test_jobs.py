"""When a job is tried again: a pure decision."""

from __future__ import annotations

import pytest

from thinkwell.journal.jobs import GiveUp, Job, ProcessDied, Retry, next_try

ERROR = ConnectionError("gone")
NOW = 1000.0


def job(**fields: object) -> Job:
    known = {"agent_id": "a/x", "id": "1", "name": "work", "attempt": 1, "max_attempts": 5}
    return Job(**{**known, **fields})


@pytest.mark.parametrize(
    ("attempt", "longest"), [(1, 2.0), (2, 4.0), (3, 8.0), (4, 10.0), (10_000, 10.0)]
)
def test_the_pause_is_random_up_to_a_bound_that_doubles_to_its_limit(attempt: int, longest: float):
    tried = job(attempt=attempt, max_attempts=20_000, base_delay=1.0, max_delay=10.0)
    pauses = [next_try(tried, ERROR, NOW, lambda share=share: share) for share in (0.0, 0.5)]
    assert pauses == [Retry(NOW), Retry(NOW + longest / 2)]


def test_after_the_last_attempt_it_is_given_up():
    assert next_try(job(attempt=5), ERROR, NOW, lambda: 0.5) == GiveUp()
    assert isinstance(next_try(job(attempt=4), ERROR, NOW, lambda: 0.5), Retry)


def test_a_job_that_died_is_tried_again_at_once():
    assert next_try(job(deaths=1), ProcessDied(), NOW, lambda: 0.5) == Retry(NOW)


@pytest.mark.parametrize("fields", [{"deaths": 2, "max_attempts": 99}, {"max_attempts": 1}])
def test_a_job_that_dies_for_the_third_time_or_at_its_last_attempt_is_given_up(
    fields: dict[str, object],
):
    assert next_try(job(**fields), ProcessDied(), NOW, lambda: 0.5) == GiveUp()
