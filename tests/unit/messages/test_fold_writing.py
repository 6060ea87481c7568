"""Text and reasoning under their chunks (F2, F3, F4, F21)."""

import pytest

from tests.unit.messages.helpers import assistant, chunk, fold, parts_of, text
from thinkwell.messages.fold import OpenPart

pytestmark = pytest.mark.parametrize("kind", ["text", "reasoning"])


def start(kind, part_id="p", **fields):
    return chunk(f"{kind}-start", id=part_id, **fields)


def delta(kind, content, part_id="p", **fields):
    return chunk(f"{kind}-delta", id=part_id, delta=content, **fields)


def end(kind, part_id="p", **fields):
    return chunk(f"{kind}-end", id=part_id, **fields)


def test_deltas_join_in_order_and_the_end_closes(kind):
    parts = parts_of(start(kind), delta(kind, "Hel"), delta(kind, "lo"), end(kind))
    assert parts == [{"type": kind, "text": "Hello", "state": "done"}]


def test_an_open_part_is_streaming_and_known_as_open(kind):
    folding = fold(start(kind), delta(kind, "Hel"))
    assert folding.message["parts"] == [{"type": kind, "text": "Hel", "state": "streaming"}]
    assert folding.open_parts() == [OpenPart(kind, "p", "Hel")]


def test_interleaved_ids_do_not_mix(kind):
    parts = parts_of(
        start(kind, "x"), start(kind, "y"), delta(kind, "1", "x"), delta(kind, "2", "y"),
        delta(kind, "3", "x"),
    )  # fmt: skip
    assert [part["text"] for part in parts] == ["13", "2"]


def test_an_id_may_be_used_again_in_the_next_step(kind):
    once = (start(kind), delta(kind, "a"), end(kind))
    assert [part["text"] for part in parts_of(*once, *once)] == ["a", "a"]


def test_provider_metadata_is_replaced_by_each_chunk_that_has_some(kind):
    parts = parts_of(
        start(kind, providerMetadata={"m": {"a": 1}}),
        delta(kind, "x", providerMetadata={"m": {"b": 2}}),
        end(kind),
    )
    assert parts[0]["providerMetadata"] == {"m": {"b": 2}}


def test_finish_step_closes_what_is_open(kind):
    folding = fold(start(kind), delta(kind, "x"), chunk("finish-step"))
    assert folding.message["parts"][0] == {"type": kind, "text": "x", "state": "done"}
    assert folding.open_parts() == []


class TestIllegalStreams:
    def test_a_delta_without_start_goes_to_the_last_part(self, kind):
        parts = parts_of(start(kind), delta(kind, "a"), delta(kind, "b", "?"), delta(kind, "c"))
        assert [part["text"] for part in parts] == ["abc"]

    def test_a_delta_without_any_part_opens_one(self, kind):
        folding = fold(delta(kind, "a"), delta(kind, "b"))
        assert folding.message["parts"] == [{"type": kind, "text": "ab", "state": "streaming"}]

    def test_an_end_without_start_closes_only_an_abandoned_part(self, kind):
        left = assistant({"type": kind, "text": "x", "state": "streaming"})
        assert parts_of(end(kind), onto=left)[0]["state"] == "done"
        assert parts_of(start(kind), end(kind, "?"))[0]["state"] == "streaming"
        assert parts_of(end(kind)) == []

    @pytest.mark.parametrize("broken", [{}, {"id": 1}, {"id": []}, {"id": "p", "delta": 7}])
    def test_a_broken_chunk_does_nothing(self, kind, broken):
        moves = ("start", "delta", "end") if "delta" not in broken else ("delta",)
        assert parts_of(*(chunk(f"{kind}-{move}", **broken) for move in moves)) == []


class TestContinuation:
    """F21: an interrupted part goes on instead of a new one."""

    def test_the_interrupted_part_goes_on(self, kind):
        cut = assistant({"type": kind, "text": "one ", "state": "streaming"})
        again = (
            chunk("start-step"),
            start(kind, "new"),
            delta(kind, "two", "new"),
            end(kind, "new"),
        )
        parts = parts_of(*again, onto=cut, continuation=True)
        assert parts == [{"type": kind, "text": "one two", "state": "done"}, {"type": "step-start"}]

    def test_only_once(self, kind):
        cut = assistant({"type": kind, "text": "one ", "state": "streaming"})
        parts = parts_of(start(kind, "x"), start(kind, "y"), onto=cut, continuation=True)
        assert len(parts) == 2

    def test_not_when_the_part_was_finished(self, kind):
        whole = assistant({"type": kind, "text": "one", "state": "done"})
        assert len(parts_of(start(kind), onto=whole, continuation=True)) == 2

    def test_not_in_a_later_step(self, kind):
        cut = assistant({"type": kind, "text": "one", "state": "streaming"})
        parts = parts_of(chunk("finish-step"), start(kind), onto=cut, continuation=True)
        assert len(parts) == 2

    def test_not_outside_a_continuation(self, kind):
        cut = assistant({"type": kind, "text": "one", "state": "streaming"})
        assert len(parts_of(start(kind), onto=cut)) == 2

    def test_not_when_the_part_was_reset_away(self, kind):
        cut = assistant({"type": kind, "text": "one", "state": "streaming"})
        reset = (chunk("reset-step"), start(kind), delta(kind, "two"))
        assert [p["text"] for p in parts_of(*reset, onto=cut, continuation=True)] == ["two"]

    def test_reasoning_does_not_go_on_behind_a_text(self, kind):
        cut = assistant({"type": kind, "text": "one", "state": "streaming"}, text("later"))
        assert len(parts_of(start(kind), onto=cut, continuation=True)) == 3
