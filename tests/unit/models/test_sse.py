"""Cutting an event stream into payloads."""

import pytest

from thinkwell.models.sse import SsePayloads

STREAM = 'data: {"a": "ü"}\n\ndata: {"b": "🙂"}\n\n: ping\n\nevent: x\ndata:[DONE]\n\n'.encode()
EXPECTED = ['{"a": "ü"}'.encode(), '{"b": "🙂"}'.encode(), b"[DONE]"]


def payloads_of(*chunks: bytes) -> list[bytes]:
    splitter = SsePayloads()
    found = [payload for chunk in chunks for payload in splitter.feed(chunk)]
    return found + splitter.flush()


class TestSplitFrames:
    def test_whole_lines_in_one_chunk(self):
        assert payloads_of(STREAM) == EXPECTED

    @pytest.mark.parametrize("at", range(1, len(STREAM)))
    def test_a_cut_anywhere_changes_nothing(self, at):
        assert payloads_of(STREAM[:at], STREAM[at:]) == EXPECTED

    def test_byte_by_byte(self):
        assert payloads_of(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == EXPECTED

    def test_crlf(self):
        assert payloads_of(STREAM.replace(b"\n", b"\r\n")) == EXPECTED

    def test_comments_and_other_fields_are_left_out(self):
        assert payloads_of(b": ping\nid: 3\nretry: 5\n\n") == []

    def test_a_last_line_without_an_end_is_found_by_flush(self):
        assert payloads_of(b"data: 1\n\ndata: 2") == [b"1", b"2"]

    def test_nothing_gives_nothing(self):
        assert payloads_of() == []
