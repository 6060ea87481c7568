"""How far one turn is spread over the code. The limits only go down."""

from __future__ import annotations

from tests.architecture.turn_trace import figures, report, trace_text_turn

LIMITS = {
    "touched": 85,  # files with any call, helpers and properties included
    "crossed": 58,  # files to follow, one to the next
    # Once in; then the agent is asked: may they, its tools, its prompt, its model, which actions.
    "crossings": 6,
}


async def test_a_text_turn_over_the_socket_stays_in_few_files_and_in_its_folder():
    trace = await trace_text_turn()
    found = figures(trace)
    assert {what: n for what, n in found.items() if n > LIMITS[what]} == {}, report(trace)
