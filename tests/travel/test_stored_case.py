"""A turn that was exported once and stays in the repository, replayed against the code of today.

A case is a stored format: this one must open for ever. If the example changes on purpose, export
the turn again (`thinkwell turns export ID > tests/travel/cases/reminder.json`).
"""

from __future__ import annotations

from typing import Any

import pytest

from examples.reminders import Concierge
from thinkwell.core.errors import ReplayError

pytest_plugins = ["thinkwell.pytest_plugin"]
CASE = "cases/reminder.json"
"""Beside this file."""


def test_the_example_still_sends_what_it_sent_when_the_turn_was_exported(replay: Any):
    again = replay(CASE, Concierge, allow=["model"])  # it was exported with a scripted one
    assert again.turn.status == "completed"
    assert again.journal.bodies == again.case.journal.bodies


def test_a_changed_prompt_fails_and_is_told_with_both_values(replay: Any):
    class Changed(Concierge, name="concierge"):
        system_prompt = "Be brief."

    with pytest.raises(ReplayError) as told:
        replay(CASE, Changed, allow=["model"])
    assert "Be brief." in str(told.value)
    assert "You are a helpful assistant." in str(told.value)
