"""Which repetitions are dropped before they are stored or forwarded (F18)."""

import pytest

from tests.unit.messages.helpers import ASKED, assistant, call, chunk, fold, tool_chunk
from thinkwell.messages.replay_filter import is_replayed

DELTA = chunk("tool-input-delta", toolCallId="c1", inputTextDelta="{}")
INPUT = tool_chunk("input-available", input={})
ASK = ASKED[1]
DENY = tool_chunk("output-denied")


def dropped(item, state, **fields):
    return is_replayed(item, fold(onto=assistant(call(state, **fields)), continuation=True))


@pytest.mark.parametrize("item", [tool_chunk("input-start"), DELTA, INPUT, ASK, DENY])
def test_nothing_about_an_unknown_call_is_dropped(item):
    assert not is_replayed(item, fold())


@pytest.mark.parametrize("state", ["input-streaming", "input-available", "output-available"])
def test_a_start_of_a_known_call_is_dropped(state):
    assert dropped(tool_chunk("input-start"), state)


@pytest.mark.parametrize("item", [DELTA, INPUT])
def test_input_passes_only_while_it_streams(item):
    assert not dropped(item, "input-streaming")
    assert dropped(item, "input-available")
    assert dropped(item, "output-error")


def test_an_input_that_an_approval_still_lacks_passes():
    folding = fold(tool_chunk("input-start"), ASK)
    assert not is_replayed(INPUT, folding)
    folding.apply(INPUT)
    assert is_replayed(INPUT, folding)


@pytest.mark.parametrize("item", [ASK, DENY])
def test_asking_and_denying_end_with_the_answer(item):
    assert not dropped(item, "input-available")
    assert not dropped(item, "approval-requested")
    assert dropped(item, "approval-responded", approval={"id": "ap", "approved": True})
    assert dropped(item, "output-available")


def test_the_denial_after_the_answer_no_passes():
    assert not dropped(DENY, "approval-responded", approval={"id": "ap", "approved": False})


def test_outputs_and_texts_always_pass():
    assert not dropped(tool_chunk("output-available", output=1), "output-available")
    assert not dropped(chunk("text-start", id="t"), "output-available")
    assert not dropped({"type": "tool-input-start", "toolCallId": []}, "output-available")
