"""How far one turn is spread over the code. The limits only go down."""

from __future__ import annotations

from tests.architecture.turn_trace import report, trace_text_turn

CROSSINGS = 6
"""Once in; then the agent is asked: may they, its tools, its prompt, its model, which actions."""
CROSSED = 60
"""Files to follow, one to the next."""
TOUCHED = 104
"""Files with any call, helpers and properties included."""


async def test_a_text_turn_over_the_socket_stays_in_few_files_and_in_its_folder():
    trace = await trace_text_turn()
    found = (len(trace.crossings), len(trace.crossed), len(trace.files))
    within = [a <= b for a, b in zip(found, (CROSSINGS, CROSSED, TOUCHED), strict=True)]
    assert all(within), f"{found}\n{report(trace)}"
