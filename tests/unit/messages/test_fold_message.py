"""Everything else a stream says about its message (F1, F4, F14-F17)."""

import pytest

from tests.unit.messages.helpers import (
    assistant,
    chunk,
    fold,
    fold_chunks,
    parts_of,
    text,
    tool_chunk,
)
from thinkwell.messages.fold import Fold


class TestStart:
    def test_f1_a_new_turn_takes_the_id_of_the_stream(self):
        assert fold_chunks([chunk("start", messageId="new")], "old")["id"] == "new"
        assert fold_chunks([chunk("start")], "old")["id"] == "old"

    def test_f1_a_continuation_keeps_its_id(self):
        folding = fold(chunk("start", messageId="new"), continuation=True)
        assert folding.message["id"] == "a1"

    def test_f1_metadata_merges_object_by_object(self):
        folding = fold(
            chunk("start", messageMetadata={"a": {"x": 1, "y": 1}, "b": 1}),
            chunk("message-metadata", messageMetadata={"a": {"y": 2}, "b": [2]}),
            chunk("finish", messageMetadata={"c": None}),
        )
        assert folding.message.get("metadata") == {"a": {"x": 1, "y": 2}, "b": [2], "c": None}

    def test_metadata_that_is_no_object_is_ignored(self):
        assert "metadata" not in fold(chunk("message-metadata", messageMetadata=7)).message


class TestSteps:
    def test_f4_a_step_begins_with_its_mark(self):
        assert parts_of(chunk("start-step")) == [{"type": "step-start"}]

    def test_f4_a_reset_takes_back_the_step_but_not_its_mark(self):
        step = (chunk("start-step"), tool_chunk("input-start"), chunk("text-start", id="t"))
        folding = fold(chunk("start-step"), chunk("custom", kind="m.x"), *step, chunk("reset-step"))
        kinds = [part["type"] for part in folding.message["parts"]]
        assert kinds == ["step-start", "custom", "step-start"]
        assert folding.open_parts() == []

    def test_f4_a_call_that_was_taken_back_may_come_again(self):
        parts = parts_of(tool_chunk("input-start"), chunk("reset-step"), tool_chunk("input-start"))
        assert len(parts) == 1

    def test_a_text_opened_before_the_reset_does_not_swallow_later_deltas(self):
        opened = (chunk("text-start", id="t"), chunk("text-delta", id="t", delta="lost"))
        again = (chunk("reset-step"), chunk("text-delta", id="t", delta="kept"))
        assert parts_of(*opened, *again)[0]["text"] == "kept"


class TestOtherParts:
    @pytest.mark.parametrize(
        "given",
        [
            chunk("file", mediaType="image/png", url="data:x"),
            chunk("reasoning-file", mediaType="image/png", url="data:x"),
            chunk("source-url", sourceId="s", url="https://x", title="X"),
            chunk("source-document", sourceId="s", mediaType="text/plain", title="X"),
            chunk("custom", kind="mock.x", providerMetadata={"mock": {}}),
        ],
    )
    def test_f14_files_sources_and_custom_parts_are_appended_as_they_are(self, given):
        assert parts_of(given) == [given]

    def test_f14_a_file_without_its_url_is_no_file(self):
        assert parts_of(chunk("file", mediaType="image/png")) == []

    def test_f15_data_with_an_id_is_replaced_in_place(self):
        first = chunk("data-status", id="s", data=1)
        parts = parts_of(first, chunk("data-other", id="s", data=2), first | {"data": 3})
        assert parts == [first | {"data": 3}, chunk("data-other", id="s", data=2)]

    def test_f15_data_without_an_id_is_appended(self):
        assert len(parts_of(chunk("data-x", data=1), chunk("data-x", data=1))) == 2

    def test_f15_transient_data_is_not_stored(self):
        assert parts_of(chunk("data-x", data=1, transient=True)) == []

    @pytest.mark.parametrize("kind", ["abort", "error", "unheard-of", "data-", 7, None, []])
    def test_f16_f17_what_says_nothing_about_parts_stores_nothing(self, kind):
        before = assistant(text("x"))
        assert fold({"type": kind}, onto=before).message == before


class TestTheFoldItself:
    def test_the_message_is_one_dict_and_the_input_stays_as_it_was(self):
        before = assistant(text("x", state="streaming"))
        folding = Fold(before)
        seen = folding.message
        folding.apply(chunk("text-delta", id="t", delta="y"))
        assert folding.message is seen
        assert (seen["parts"][0]["text"], before["parts"][0]["text"]) == ("xy", "x")

    def test_a_snapshot_is_left_alone_by_later_chunks(self):
        folding = fold(chunk("data-x", id="d", data={"list": [1]}))
        snapshot = folding.snapshot()
        folding.message["parts"][0]["data"]["list"].append(2)
        assert snapshot["parts"][0]["data"] == {"list": [1]}
