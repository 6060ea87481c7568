"""What goes wrong on the wire, concern by concern, in all three protocols.

The bytes are those of the mock, which the providers' own clients accept
(`test_official_clients.py`); then they are cut, mixed with what servers put between, or broken.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.models.helpers import calls_of, collect, failure_of, finish_of, text_of
from tests.unit.models.test_connections import ADAPTERS, served
from thinkwell.core import json
from thinkwell.core.errors import ModelError
from thinkwell.models.anthropic_stream import MessageStream
from thinkwell.models.base import Failure, Finish, ModelEvent
from thinkwell.models.error_classes import default_error_classifier
from thinkwell.models.openai_chat_stream import ChatStream
from thinkwell.models.openai_responses_stream import ResponseStream
from thinkwell.testing.mock_provider import PROTOCOLS, RawReply
from thinkwell.testing.protocols import anthropic_messages, chat_completions, openai_responses
from thinkwell.testing.protocols.reply import MockCall, Reply

READERS: dict[str, Any] = {
    chat_completions.PATH: lambda: ChatStream("openai-chat"),
    openai_responses.PATH: ResponseStream,
    anthropic_messages.PATH: MessageStream,
}
ANSWER = Reply(
    reasoning=["Hm, ", "日本"],
    deltas=["Zoë 🙂 ", '"x"\n'],
    calls=[MockCall(name="search", arguments=['{"q": "dö', 't"}'], id="c1")],
)
ERRORS = {
    chat_completions.PATH: {"error": {"message": "boom", "type": "server_error"}},
    openai_responses.PATH: {"type": "error", "code": "server_error", "message": "boom"},
    anthropic_messages.PATH: {"type": "error", "error": {"type": "api_error", "message": "boom"}},
}
UNKNOWN = {"type": "brand.new.event", "what": 1}


@pytest.fixture(params=ADAPTERS, ids=["chat", "responses", "messages"])
def path(request: pytest.FixtureRequest) -> str:
    return request.param


def encoded(path: str, reply: Reply = ANSWER) -> list[bytes]:
    return PROTOCOLS[path].encode_reply(reply, "m")


def fed(path: str, chunks: Sequence[bytes]) -> list[ModelEvent]:
    """What a reader makes of bytes that come in these pieces."""
    reader = READERS[path]()
    events: list[ModelEvent] = []
    for chunk in chunks:
        events += reader.feed(chunk)
    if not reader.failed:
        events += reader.end({}, ())
    return events


def plain(events: Sequence[ModelEvent]) -> tuple[Any, ...]:
    """What was said, without ids that are made anew."""
    names = [type(event).__name__ for event in events]
    return names, text_of(events), [call[1:] for call in calls_of(events)]


def line(payload: Any) -> bytes:
    return b"data: " + json.dump_bytes(payload) + b"\n\n"


class TestTheWire:
    def test_a_cut_at_every_byte_changes_nothing(self, path: str):
        whole = b"".join(encoded(path))
        wanted = plain(fed(path, [whole]))
        assert wanted[1] == "".join(ANSWER.deltas)
        for at in range(1, len(whole)):
            assert plain(fed(path, [whole[:at], whole[at:]])) == wanted, at

    def test_one_byte_at_a_time_is_the_same_answer(self, path: str):
        whole = b"".join(encoded(path))
        pieces = [whole[at : at + 1] for at in range(len(whole))]
        assert plain(fed(path, pieces)) == plain(fed(path, [whole]))

    def test_an_answer_that_ends_at_any_byte_is_whole_or_a_failure_worth_a_retry(self, path: str):
        whole = b"".join(encoded(path))
        for at in range(len(whole)):
            events = fed(path, [whole[:at]])
            last = events[-1]
            if isinstance(last, Failure):
                assert isinstance(last.error, ModelError)
                assert last.error.cut or "cannot be read" in str(last.error), at
            else:
                assert isinstance(last, Finish)
            assert sum(isinstance(event, Finish | Failure) for event in events) == 1

    def test_comments_pings_retry_fields_and_crlf_say_nothing(self, path: str):
        noise = b': OPENROUTER PROCESSING\n\nretry: 3000\n\nevent: ping\ndata: {"type":"ping"}\n\n'
        if path == chat_completions.PATH:
            noise = b": keep-alive\n\nretry: 3000\nid: 7\n\n"
        chunks = [piece for event in encoded(path) for piece in (noise, event)]
        wanted = plain(fed(path, encoded(path)))
        assert plain(fed(path, chunks)) == wanted
        crlf = b"".join(chunks).replace(b"\n", b"\r\n")
        assert plain(fed(path, [crlf])) == wanted

    def test_events_and_fields_of_tomorrow_are_passed_over(
        self, path: str, caplog: pytest.LogCaptureFixture
    ):
        tomorrow = {"what": 1} if path == chat_completions.PATH else UNKNOWN
        chunks = [piece for event in encoded(path) for piece in (line(tomorrow), event)]
        with caplog.at_level(logging.DEBUG, logger="thinkwell.models"):
            assert plain(fed(path, chunks)) == plain(fed(path, encoded(path)))
        assert sum("brand.new.event" in record.getMessage() for record in caplog.records) <= 1


class TestWhatModelsDo:
    def test_an_answer_without_a_word_is_an_answer(self, path: str):
        events = fed(path, encoded(path, Reply()))
        assert (text_of(events), finish_of(events).reason) == ("", "stop")

    @pytest.mark.parametrize("arguments", ["{", "not json", '{"a": 1}{"b": 2}', '"text"', "[1]"])
    def test_malformed_arguments_are_told_as_they_came(self, path: str, arguments: str):
        """Whoever runs the call says what is wrong with them."""
        call = MockCall(name="search", arguments=[arguments], id="c1")
        events = fed(path, encoded(path, Reply(calls=[call])))
        assert [told[1:] for told in calls_of(events)] == [("search", arguments)]
        assert finish_of(events).reason == "tool-calls"

    def test_an_error_in_the_middle_of_an_answer_ends_it(self, path: str):
        half = encoded(path)[: len(encoded(path)) // 2]
        events = fed(path, [*half, line(ERRORS[path])])
        error = failure_of(events)
        assert isinstance(error, ModelError)
        assert "boom" in str(error)
        assert error.retryable
        assert sum(isinstance(event, Finish | Failure) for event in events) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "body", "kind"),
        [
            (429, '{"error":{"message":"Rate limit reached"}}', "rate_limit"),
            (529, '{"error":{"type":"overloaded_error","message":"Overloaded"}}', "transient"),
            (503, "<html>upstream</html>", "transient"),
            (400, '{"error":{"code":"context_length_exceeded","message":"x"}}', "context_overflow"),
            (413, '{"error":{"type":"request_too_large","message":"x"}}', "context_overflow"),
            (402, '{"error":{"message":"Insufficient Balance"}}', "quota"),
            (401, '{"error":{"message":"bad"}}', "auth"),
        ],
    )
    async def test_a_status_is_an_error_of_its_kind(
        self, path: str, status: int, body: str, kind: str
    ):
        reply = RawReply(
            chunks=[body.encode()],
            status=status,
            content_type="application/json",
            headers={"Retry-After": "7"},
        )
        async with served(path, lambda _: reply) as (model, _):
            error = failure_of(await collect(model))
        assert isinstance(error, ModelError)
        assert (error.status, error.retry_after) == (status, 7.0)
        assert default_error_classifier(error) == kind
