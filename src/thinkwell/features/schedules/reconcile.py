"""What has to be written so that the stored tasks are the declared ones. Pure (spec/04 §11.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from thinkwell.features.schedules.declared import Declared
from thinkwell.features.schedules.occurrences import next_occurrence
from thinkwell.journal.jobs import Job


class Arm(NamedTuple):
    """A task is new, or its times have changed: its next time is this one."""

    task_id: str
    at: float


class Describe(NamedTuple):
    """Something else has changed: a run that is due, and the attempts it has had, stay."""

    task_id: str
    job: Job


class Remove(NamedTuple):
    """Nobody declares it any more."""

    job: Job


Step = Arm | Describe | Remove


def plan_reconcile(
    declared: Mapping[str, Declared], stored: Mapping[str, Job], now: float
) -> Sequence[Step]:
    """The steps from what is stored of tasks, by name, to what is declared; none if it is that."""
    steps: list[Step] = [Remove(job) for name, job in stored.items() if name not in declared]
    for name, task in declared.items():
        job = stored.get(name)
        known = None if job is None else job.recurs
        if job is None or known is None or known.get("schedule") != str(task.timetable):
            steps.append(Arm(name, next_occurrence(task.timetable, now)))
        elif known.get("hash") != task.hash:
            steps.append(Describe(name, job))
    return steps
