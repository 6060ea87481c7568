"""The chat-completions adapter against a real server on loopback, concern by concern."""

import asyncio
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from tests.unit.models.helpers import (
    calls_of,
    collect,
    failure_of,
    finish_of,
    reasoning_of,
    request,
    text_of,
)
from thinkwell.core.errors import ConfigurationError, ModelError
from thinkwell.core.signal import AbortController
from thinkwell.messages.usage import Usage
from thinkwell.models import provider_response
from thinkwell.models.base import (
    FilePart,
    Model,
    ReasoningEnd,
    ReasoningStart,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.testing.mock_provider import MockCall, MockProvider, RawReply, Reply
from thinkwell.testing.protocols.chat_completions import encode_reply


@asynccontextmanager
async def served(*replies):
    async with MockProvider(list(replies)) as provider:
        model = OpenAIChatModel("m", base_url=provider.base_url, api_key="secret")
        try:
            yield model, provider
        finally:
            await model.aclose()


async def events_of(*replies):
    async with served(*replies) as (model, _provider):
        return await collect(model)


def raw(*lines: str, **options) -> RawReply:
    return RawReply(chunks=[f"data: {line}\n\n".encode() for line in lines], **options)


def delta(fields: str, reason: str = "null") -> str:
    return f'{{"choices":[{{"delta":{{{fields}}},"finish_reason":{reason}}}]}}'


STOP = delta("", '"stop"')


class TestWhatServersAdd:
    """Deviations of those that speak the protocol, as their documentation shows them."""

    async def test_mistral_sends_thoughts_and_text_as_a_list(self):
        thought = '"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]'
        said = '"content":[{"type":"text","text":"Yes"},{"type":"reference","reference_ids":[1]}]'
        events = await events_of(raw(delta(thought), delta(said), delta('"content":"!"'), STOP))
        assert (reasoning_of(events), text_of(events)) == ("Hm.", "Yes!")
        assert sum(isinstance(event, TextStart) for event in events) == 1
        assert finish_of(events).reason == "stop"

    async def test_openrouter_sends_pictures(self):
        url = "data:image/webp;base64,AA=="
        image = f'"content":"","images":[{{"type":"image_url","image_url":{{"url":"{url}"}}}},7]'
        events = await events_of(raw(delta(image), STOP))
        assert [event for event in events if isinstance(event, FilePart)] == [
            FilePart(url, "image/webp")
        ]

    async def test_pages_that_are_cited_are_sources_once_each(self):
        cited = (
            '"annotations":[{"type":"url_citation","url_citation":{"url":"https://a","title":"A"}}]'
        )
        line = '{"choices":[{"delta":{"content":"x"}}],"citations":["https://a","https://b"]}'
        events = await events_of(raw(delta(cited), line, line, STOP))
        sources = [event for event in events if isinstance(event, SourceUrl)]
        assert [(source.url, source.title) for source in sources] == [
            ("https://a", "A"),
            ("https://b", None),
        ]
        assert len({source.source_id for source in sources}) == 2

    async def test_deepseek_counts_cached_tokens_in_a_field_of_its_own(self):
        usage = '{"choices":[],"usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":4}}'
        finish = finish_of(await events_of(raw(delta('"content":"x"'), STOP, usage)))
        assert (finish.usage.input_tokens, finish.usage.cached_input_tokens) == (9, 4)

    @pytest.mark.parametrize(
        ("theirs", "ours"),
        [("eos", "stop"), ("model_length", "length"), ("insufficient_system_resource", "error")],
    )
    async def test_reasons_of_their_own(self, theirs, ours):
        events = await events_of(raw(delta('"content":"x"'), delta("", f'"{theirs}"')))
        assert (finish_of(events).reason, finish_of(events).raw_reason) == (ours, theirs)

    async def test_log_probabilities_are_passed_over(self):
        line = (
            '{"choices":[{"delta":{"content":"x"},"logprobs":{"content":[{"token":"x",'
            '"logprob":-0.1,"bytes":[120],"top_logprobs":[]}],"refusal":null},"index":0}]}'
        )
        assert text_of(await events_of(raw(line, STOP))) == "x"


class TestText:
    async def test_deltas_lie_between_one_start_and_one_end(self):
        events = await events_of(Reply(deltas=["Hel", "lo"]))
        assert events[:-1] == [
            TextStart("txt-0"),
            TextDelta("txt-0", "Hel"),
            TextDelta("txt-0", "lo"),
            TextEnd("txt-0"),
        ]

    async def test_the_finish_tells_reason_usage_ids_and_headers(self):
        finish = finish_of(await events_of(Reply(deltas=["x"])))
        assert (finish.reason, finish.raw_reason) == ("stop", "stop")
        assert (finish.response_id, finish.model_id) == ("chatcmpl-mock", "m")
        assert finish.usage == Usage(input_tokens=7, output_tokens=5, total_tokens=12)
        assert finish.headers["Content-Type"].startswith("text/event-stream")

    async def test_cached_and_reasoning_tokens_are_counted(self):
        usage = {
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "total_tokens": 13,
            "prompt_tokens_details": {"cached_tokens": 8},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }
        finish = finish_of(await events_of(Reply(deltas=["x"], usage=usage)))
        assert finish.usage.cached_input_tokens == 8
        assert finish.usage.reasoning_tokens == 3

    async def test_a_refusal_is_text(self):
        events = await events_of(raw(delta('"refusal":"I cannot."'), STOP, "[DONE]"))
        assert text_of(events) == "I cannot."

    async def test_thousands_of_deltas_in_one_burst_arrive_complete_and_in_order(self):
        words = [f"{number} " for number in range(5000)]
        events = await events_of(Reply(deltas=words))
        assert text_of(events) == "".join(words)


class TestReasoning:
    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
    async def test_both_spellings_become_a_part_that_ends_before_the_text(self, field):
        events = await events_of(raw(delta(f'"{field}":"Hm"'), delta('"content":"A"'), STOP))
        assert reasoning_of(events) == "Hm"
        assert events[0] == ReasoningStart("rsn-0")
        assert events[2:4] == [ReasoningEnd("rsn-0"), TextStart("txt-1")]

    async def test_reasoning_between_texts_makes_three_parts(self):
        replies = raw(
            delta('"content":"A"'), delta('"reasoning":"B"'), delta('"content":"C"'), STOP
        )
        starts = [e.id for e in await events_of(replies) if isinstance(e, TextStart)]
        assert starts == ["txt-0", "txt-2"]


class TestToolCalls:
    async def test_a_call_is_started_written_and_told_whole(self):
        call = MockCall(name="get_weather", arguments=['{"ci', 'ty":"Rome"}'], id="c1")
        events = await events_of(Reply(calls=[call]))
        assert events[:-1] == [
            ToolInputStart("c1", "get_weather"),
            ToolInputDelta("c1", '{"ci'),
            ToolInputDelta("c1", 'ty":"Rome"}'),
            ToolCall("c1", "get_weather", '{"city":"Rome"}'),
        ]
        assert finish_of(events).reason == "tool-calls"

    async def test_parallel_calls_are_told_apart_by_index(self):
        calls = [MockCall(name="a", id="c1"), MockCall(name="b", id="c2")]
        events = await events_of(Reply(deltas=["Wait."], calls=calls))
        assert calls_of(events) == [("c1", "a", "{}"), ("c2", "b", "{}")]
        assert events.index(TextEnd("txt-0")) < events.index(ToolInputStart("c1", "a"))

    async def test_interleaved_pieces_find_their_call(self):
        def piece(index, text, head=""):
            return delta(f'"tool_calls":[{{"index":{index},{head}"function":{{{text}}}}}]')

        events = await events_of(
            raw(
                piece(0, '"name":"a","arguments":"{"', '"id":"c1",'),
                piece(1, '"name":"b","arguments":"["', '"id":"c2",'),
                piece(0, '"arguments":"}"'),
                piece(1, '"arguments":"]"'),
                STOP,
            )
        )
        assert calls_of(events) == [("c1", "a", "{}"), ("c2", "b", "[]")]
        assert finish_of(events).reason == "tool-calls"

    async def test_calls_that_share_an_index_are_told_apart_by_id(self):
        calls = [
            delta(f'"tool_calls":[{{"index":0,"id":"{i}","function":{{"name":"{n}"}}}}]')
            for i, n in (("c1", "a"), ("c2", "b"))
        ]
        assert calls_of(await events_of(raw(*calls, STOP))) == [("c1", "a", ""), ("c2", "b", "")]

    async def test_a_call_without_id_and_index_gets_an_id(self):
        line = delta('"tool_calls":[{"function":{"name":"a","arguments":"{}"}}]')
        [(call_id, name, arguments)] = calls_of(await events_of(raw(line, STOP)))
        assert call_id.startswith("call_")
        assert (name, arguments) == ("a", "{}")

    async def test_arguments_that_come_before_the_name_are_kept(self):
        first = delta('"tool_calls":[{"index":0,"id":"c1","function":{"arguments":"{"}}]')
        second = delta('"tool_calls":[{"index":0,"function":{"name":"a","arguments":"}"}}]')
        events = await events_of(raw(first, second, STOP))
        assert events[0] == ToolInputStart("c1", "a")
        assert calls_of(events) == [("c1", "a", "{}")]


class TestFinishReasons:
    @pytest.mark.parametrize(
        ("theirs", "ours"),
        [
            ("stop", "stop"),
            ("length", "length"),
            ("content_filter", "content-filter"),
            ("function_call", "tool-calls"),
            ("eos_token", "other"),
        ],
    )
    async def test_known_reasons_are_mapped_and_unknown_ones_are_other(self, theirs, ours):
        """12.16"""
        finish = finish_of(await events_of(Reply(deltas=["x"], finish_reason=theirs)))
        assert (finish.reason, finish.raw_reason) == (ours, theirs)

    async def test_an_end_marker_without_a_reason_is_other(self):
        assert finish_of(await events_of(raw(delta('"content":"A"'), "[DONE]"))).reason == "other"

    async def test_a_reason_without_an_end_marker_is_enough(self):
        assert finish_of(await events_of(raw(delta('"content":"A"'), STOP))).reason == "stop"


class TestSplitFrames:
    async def test_one_byte_at_a_time(self):
        whole = b"".join(encode_reply(Reply(deltas=["Grüße ", "🙂"]), "m"))
        chunks = [whole[i : i + 1] for i in range(len(whole))]
        events = await events_of(RawReply(chunks=chunks))
        assert text_of(events) == "Grüße 🙂"
        assert finish_of(events).reason == "stop"

    async def test_crlf_comments_and_keep_alives(self):
        line = delta('"content":"A"').encode()
        chunk = b": hello\r\n\r\ndata: " + line + b"\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n"
        assert text_of(await events_of(RawReply(chunks=[chunk]))) == "A"

    async def test_a_last_line_without_a_line_end_counts(self):
        chunk = b"data: " + delta('"content":"A"', '"stop"').encode()
        events = await events_of(RawReply(chunks=[chunk]))
        assert text_of(events) == "A"
        assert finish_of(events).reason == "stop"

    async def test_what_follows_the_end_marker_is_not_read(self):
        reply = raw(delta('"content":"A"'), "[DONE]", delta('"content":"B"'))
        assert text_of(await events_of(reply)) == "A"


class TestUnicode:
    @pytest.mark.parametrize("text", ["Grüße", "日本語", "🙂🏽", "a\u2028b"])
    async def test_text_arrives_as_it_was(self, text):
        events = await events_of(raw(delta(f'"content":"{text}"'), STOP))
        assert text_of(events) == text

    async def test_escapes_are_read(self):
        events = await events_of(raw(delta(r'"content":"\u00fc \ud83d\ude42"'), STOP))
        assert text_of(events) == "ü 🙂"

    async def test_half_an_escaped_character_is_replaced_and_the_answer_goes_on(self):
        halves = [delta(rf'"content":"\{half}"') for half in ("ud83d", "ude42")]
        events = await events_of(raw(*halves, delta('"content":"!"'), STOP))
        assert text_of(events) == "\ufffd\ufffd!"

    async def test_text_is_sent_as_it_is(self):
        async with served(Reply(deltas=["ok"])) as (model, provider):
            await collect(model, request("Grüße 🙂"))
        assert provider.requests[0].body["messages"][-1]["content"] == "Grüße 🙂"


class TestEmpty:
    @pytest.mark.parametrize("reply", [RawReply(), raw("[DONE]"), raw('{"choices":[]}', "[DONE]")])
    async def test_a_stream_without_an_answer_is_a_failure_worth_a_retry(self, reply):
        error = failure_of(await events_of(reply))
        assert "empty stream" in str(error)
        assert error.retryable

    async def test_an_answer_without_words_is_an_answer(self):
        events = await events_of(raw(delta('"content":""'), STOP, "[DONE]"))
        assert [finish_of(events)] == events


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "retryable"),
        [
            *((status, False) for status in (400, 401, 404)),
            *((status, True) for status in (408, 409, 429, 500, 503)),
        ],
    )
    async def test_a_status_becomes_an_error_that_says_whether_to_retry(self, status, retryable):
        """12.16"""
        body = b'{"error":{"message":"no such luck"}}'
        reply = RawReply(chunks=[body], status=status, content_type="application/json")
        error = failure_of(await events_of(reply))
        assert isinstance(error, ModelError)
        assert (error.status, error.retryable, error.provider) == (status, retryable, "openai-chat")
        assert str(error).startswith(f"openai-chat answered {status}: no such luck")
        assert error.body == body.decode()

    @pytest.mark.parametrize(
        ("status", "body", "hint"),
        [
            (401, b'{"error":{"message":"Bad key."}}', "Bad key. Check the key: api_key=...."),
            (403, b'{"error":{"message":"Nope"}}', "Nope. Check the key: api_key=...."),
            (
                404,
                b'{"error":{"message":"No model m"}}',
                'No model m. Check the name of the model, after "openai-chat:".',
            ),
            (404, b"<h1>Nothing</h1>", "<h1>Nothing</h1>. Check the address: base_url=...."),
        ],
    )
    async def test_a_wrong_set_up_says_what_to_set(self, status, body, hint):
        reply = RawReply(chunks=[body], status=status)
        error = failure_of(await events_of(reply))
        assert str(error) == f"openai-chat answered {status}: {hint}"

    async def test_variables_are_named_where_they_were_used(self, monkeypatch):
        reply = RawReply(chunks=[b'{"error":{"message":"Bad key."}}'], status=401)
        async with MockProvider([reply]) as provider:
            monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "wrong")
            model = OpenAIChatModel("m")
            error = failure_of(await collect(model))
            await model.aclose()
        assert str(error).endswith("Bad key. Check the key: OPENAI_API_KEY or api_key=....")

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
            ({"Retry-After": "9"}, 9.0),
            (
                {"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"},
                360.0,
            ),
            ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "7"}, None),
            ({}, None),
        ],
    )
    async def test_the_provider_says_when_to_come_back(self, headers, seconds):
        reply = RawReply(chunks=[b"{}"], status=429, headers=headers)
        assert failure_of(await events_of(reply)).retry_after == seconds

    async def test_of_a_refusal_without_an_end_only_the_beginning_is_read(self):
        body = [b"<h1>Bad gateway</h1>", *([b"x" * 100_000] * 5)]
        reply = RawReply(chunks=body, status=502, content_type="text/html", hold="end")
        assert "Bad gateway" in str(failure_of(await events_of(reply)))

    async def test_a_status_with_a_body_that_is_no_json(self):
        reply = RawReply(chunks=[b"<h1>Bad gateway</h1>"], status=502, content_type="text/html")
        assert "Bad gateway" in str(failure_of(await events_of(reply)))

    async def test_an_error_inside_the_stream_ends_it(self):
        line = '{"error":{"message":"too many","type":"rate_limit_exceeded","code":429}}'
        events = await events_of(raw(delta('"content":"A"'), line, delta('"content":"B"')))
        error = failure_of(events)
        assert (text_of(events), error.status, error.retryable) == ("A", 429, True)
        assert "too many" in str(error)

    async def test_an_error_inside_the_stream_may_be_plain_text(self):
        assert "overloaded" in str(failure_of(await events_of(raw('{"error":"overloaded"}'))))

    async def test_an_error_with_status_200_and_no_stream(self):
        body = b'{"error":{"message":"no credit","code":402}}'
        reply = RawReply(chunks=[body], content_type="application/json")
        error = failure_of(await events_of(reply))
        assert (error.status, error.retryable) == (402, False)

    async def test_an_answer_that_is_no_stream_is_a_failure(self):
        reply = RawReply(chunks=[b'{"choices":[]}'], content_type="application/json")
        assert "no stream" in str(failure_of(await events_of(reply)))

    @pytest.mark.parametrize("line", ["{", "[1]", '{"choices":"x"}', '{"choices":[{"delta":5}]}'])
    async def test_a_chunk_that_cannot_be_read_is_a_failure_that_shows_it(self, line):
        error = failure_of(await events_of(raw(line, STOP)))
        assert "cannot be read" in str(error)
        assert error.body == line

    async def test_an_answer_cut_in_the_middle_is_a_failure_worth_a_retry(self):
        error = failure_of(await events_of(raw(delta('"content":"A"'))))
        assert "in the middle" in str(error)
        assert error.retryable

    async def test_a_cut_connection_is_a_failure_worth_a_retry(self):
        events = await events_of(raw(delta('"content":"A"'), cut=True))
        assert failure_of(events).retryable
        assert text_of(events) == "A"

    async def test_nobody_listening_is_a_failure_worth_a_retry(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            model = OpenAIChatModel("m", base_url=f"http://127.0.0.1:{port}/v1")
            error = failure_of(await collect(model))
            await model.aclose()
        assert error.retryable
        assert str(port) in str(error)

    async def test_a_request_json_cannot_hold_is_a_failure(self):
        async with served() as (model, _provider):
            asked = request(provider_options={"openai-chat": {"x": object()}})
            assert isinstance(failure_of(await collect(model, asked)), TypeError)


class TestAbort:
    async def test_an_aborted_signal_asks_nothing(self):
        controller = AbortController()
        controller.abort()
        async with served() as (model, provider):
            assert await collect(model, signal=controller.signal) == []
        assert provider.requests == []

    async def test_an_abort_before_the_headers_closes_the_connection(self):
        controller = AbortController()
        async with served(RawReply(hold="headers")) as (model, provider):
            task = asyncio.create_task(collect(model, signal=controller.signal))
            await provider.arrived.acquire()
            controller.abort()
            assert await task == []
            await provider.left.wait()

    async def test_an_abort_in_the_answer_closes_the_connection_without_a_terminal_event(self):
        controller = AbortController()
        seen = []
        async with served(raw(delta('"content":"A"'), hold="end")) as (model, provider):
            async for event in model.stream(request(), controller.signal):
                seen.append(event)
                if isinstance(event, TextDelta):
                    asyncio.get_running_loop().call_soon(controller.abort)
            await provider.left.wait()
        assert seen == [TextStart("txt-0"), TextDelta("txt-0", "A")]

    async def test_closing_the_stream_closes_the_connection(self):
        async with served(raw(delta('"content":"A"'), hold="end")) as (model, provider):
            stream = model.stream(request(), AbortController().signal)
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
            await provider.left.wait()

    async def test_cancelling_the_reader_closes_the_connection(self):
        async with served(RawReply(hold="headers")) as (model, provider):
            task = asyncio.create_task(collect(model))
            await provider.arrived.acquire()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await provider.left.wait()

    async def test_an_abort_stops_between_two_events_of_one_burst(self):
        controller = AbortController()
        seen = []
        async with served(Reply(deltas=["a"] * 100)) as (model, _provider):
            async for event in model.stream(request(), controller.signal):
                seen.append(event)
                controller.abort()
        assert len(seen) == 1

    async def test_an_abort_after_the_end_changes_nothing(self):
        controller = AbortController()
        async with served(Reply(deltas=["a"])) as (model, _provider):
            events = await collect(model, signal=controller.signal)
            controller.abort()
        assert finish_of(events).reason == "stop"


class TestSilence:
    @pytest.mark.parametrize("reply", ["headers", "end"])
    async def test_a_connection_that_says_nothing_for_long_is_cut(self, monkeypatch, reply):
        monkeypatch.setattr(provider_response, "READ_TIMEOUT", 0.05)
        silent = raw(delta('"content":"A"'), hold="end")
        async with served(RawReply(hold="headers") if reply == "headers" else silent) as (
            model,
            provider,
        ):
            failure = failure_of(await collect(model))
            assert isinstance(failure, ModelError)
            assert (failure.retryable, failure.cut) == (True, True)
            await provider.left.wait()


class TestConnections:
    async def test_calls_one_after_the_other_share_a_connection(self):
        async with served(Reply(deltas=["a"]), Reply(deltas=["b"])) as (model, provider):
            assert text_of(await collect(model) + await collect(model)) == "ab"
        assert provider.connections == 1

    async def test_a_closed_model_can_be_used_again(self):
        async with served(Reply(deltas=["a"]), Reply(deltas=["b"])) as (model, _provider):
            await collect(model)
            await model.aclose()
            assert text_of(await collect(model)) == "b"

    async def test_the_key_and_extra_headers_are_sent(self):
        async with served(Reply(deltas=["a"])) as (model, provider):
            await collect(model, request(headers={"X-Team": "blue"}))
        headers = provider.requests[0].headers
        assert (headers["Authorization"], headers["X-Team"]) == ("Bearer secret", "blue")


class TestConfiguration:
    def test_it_is_a_model(self):
        model = OpenAIChatModel("m", api_key="k")
        assert isinstance(model, Model)
        assert (model.provider, model.model_id) == ("openai-chat", "m")

    def test_address_and_key_come_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")
        assert OpenAIChatModel("m").base_url == "http://127.0.0.1:9/v1"

    def test_openai_itself_needs_a_key(self, monkeypatch):
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with pytest.raises(ConfigurationError, match="Set OPENAI_API_KEY"):
            OpenAIChatModel("m")


FIRST_CALL = """
import asyncio, sys, threading
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import ModelRequest
from thinkwell.models import provider_response
from thinkwell.models.openai_chat import OpenAIChatModel

class Seen:
    def find_spec(self, name, path=None, target=None):
        if name in ("aiohttp", "httptools"):
            print(name, "by", "the loop" if threading.current_thread() is main else "a thread")

async def call():
    proxy = sys.argv[1] or None
    model = OpenAIChatModel("m", base_url="http://127.0.0.1:9/v1", proxy=proxy)
    async for event in model.stream(ModelRequest(system="", messages=()), AbortSignal()):
        print(type(event).__name__)
    await model.aclose()

main = threading.current_thread()
sys.meta_path.insert(0, Seen())
asyncio.run(call())
"""


@pytest.mark.parametrize(
    ("proxy", "library"), [("", "httptools"), ("http://127.0.0.1:9", "aiohttp")]
)
def test_the_first_call_does_not_import_its_library_on_the_loop(proxy: str, library: str):
    command = [sys.executable, "-c", FIRST_CALL, proxy]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"{library} by a thread", "Failure"], done.stderr
