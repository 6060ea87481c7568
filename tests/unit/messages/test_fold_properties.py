"""What holds for every legal stream (spec/01 §9.3, spec/02 §1.4)."""

import copy

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.messages.helpers import fold_chunks
from tests.unit.messages.strategies import legal_streams
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import tool_parts

ORDER = ("input-streaming", "input-available", "approval-requested", "approval-responded")


def rank(state):
    return ORDER.index(state) if state in ORDER else len(ORDER)


def states(message):
    return {part["toolCallId"]: part["state"] for part in tool_parts(message)}


def calls(message):
    return {part["toolCallId"]: dict(part) for part in tool_parts(message)}


@given(legal_streams)
def test_reading_in_between_changes_nothing(stream):
    watched = Fold({"id": "m", "role": "assistant", "parts": []})
    for chunk in stream:
        watched.apply(chunk)
        assert watched.snapshot() == watched.message
    assert watched.message == fold_chunks(stream, "m")


@given(legal_streams, st.integers(min_value=0))
def test_every_prefix_folds(stream, cut):
    prefix = stream[: cut % (len(stream) + 1)]
    assert isinstance(fold_chunks(prefix, "m")["parts"], list)


@given(legal_streams)
def test_chunks_are_never_changed(stream):
    before = copy.deepcopy(stream)
    fold_chunks(stream, "m")
    assert stream == before


@given(legal_streams)
def test_no_tool_state_goes_back(stream):
    folding = Fold({"id": "m", "role": "assistant", "parts": []})
    known = {}
    for chunk in stream + stream:
        folding.apply(chunk)
        now = states(folding.message)
        if chunk["type"] != "reset-step":
            assert all(rank(now[call]) >= rank(state) for call, state in known.items())
        known = now


@given(legal_streams)
def test_a_replay_onto_the_folded_message_changes_no_call(stream):
    # What a reset took back may have gone further than what was told in its place.
    assume(all(chunk["type"] != "reset-step" for chunk in stream))
    first = fold_chunks(stream, "m")
    again = Fold(first, continuation=True)
    for chunk in stream:
        again.apply(chunk)
    assert calls(again.message).items() >= calls(first).items()


@given(legal_streams, st.randoms(use_true_random=False))
def test_a_broken_stream_never_raises(stream, random):
    broken = [{k: v for k, v in c.items() if k == "type" or random.random() < 0.8} for c in stream]
    broken = [{k: random.choice((v, v, None, [])) for k, v in c.items()} for c in broken]
    random.shuffle(broken)
    folding = Fold({"id": "m", "role": "assistant", "parts": []})
    for chunk in broken:
        folding.apply(chunk)
    assert all(isinstance(part["type"], str) for part in folding.message["parts"])


def pieces(chunk):
    """The same delta as one delta for each character."""
    return [chunk | {"delta": letter} for letter in chunk["delta"]]


@given(legal_streams)
def test_how_a_text_is_split_does_not_matter(stream):
    kinds = ("text-delta", "reasoning-delta")
    fine = [p for chunk in stream for p in (pieces(chunk) if chunk["type"] in kinds else [chunk])]
    bare = [c for c in stream if c.get("delta") != ""]  # an empty delta may carry metadata
    fine = [chunk for chunk in fine if chunk.get("delta") != ""]
    assert fold_chunks(fine, "m") == fold_chunks(bare, "m")


@given(legal_streams)
def test_nothing_is_open_after_a_finished_step(stream):
    ends = [i for i, chunk in enumerate(stream) if chunk["type"] == "finish-step"]
    folding = Fold({"id": "m", "role": "assistant", "parts": []})
    for chunk in stream[: ends[-1] + 1] if ends else []:
        folding.apply(chunk)
    assert {part.kind for part in folding.open_parts()} <= {"tool-input"}
