"""A chat over a link, without an agent: which frames count, and what a lost connection means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.fakes import LOST, FakeScreen, Network, chunks, done, greeting, transcript
from thinkwell.cli.answers import AnswerToCall
from thinkwell.cli.conversation import CallError
from thinkwell.cli.links import LinkError
from thinkwell.core.json import dumps, loads
from thinkwell.wire import encode

QUESTION = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def answer_with(state: str, call_id: str = "c1") -> dict[str, Any]:
    part = {"type": "tool-delete", "toolCallId": call_id, "state": state, "input": {}}
    return {"id": "a1", "role": "assistant", "parts": [part]}


@pytest.fixture
def screen():
    return FakeScreen()


async def test_asking_shows_only_the_own_answer(screen: FakeScreen):
    network = Network([*greeting(), *chunks("other", request_id="x"), *chunks("start"), done()])
    conversation = network.conversation(screen)
    await conversation.open()
    assert await conversation.ask("hi") == "completed"
    assert screen.shown == ["start", ("completed", None)]


async def test_the_transcript_and_no_client_tools_are_sent_along(screen: FakeScreen):
    """spec/01 §6.2: an empty list says that this client has no tools."""
    network = Network([*greeting({**QUESTION, "id": "old"}), done()])
    conversation = network.conversation(screen)
    await conversation.open()
    await conversation.ask("hi")
    body = loads(network.sent[0]["init"]["body"])
    assert body["messages"][0]["id"] == "old"
    assert body["messages"][1]["parts"] == [{"type": "text", "text": "hi"}]
    assert body["clientTools"] == []


async def test_retry_asks_for_another_answer_to_the_last_question(screen: FakeScreen):
    """spec/01 §8.4."""
    network = Network([*greeting(QUESTION, answer_with("output-available")), done()])
    conversation = network.conversation(screen)
    await conversation.open()
    await conversation.retry()
    body = loads(network.sent[0]["init"]["body"])
    assert body["trigger"] == "regenerate-message"
    assert [message["id"] for message in body["messages"]] == ["u1"]


async def test_the_stored_answer_of_a_plain_turn_is_the_last_message(screen: FakeScreen):
    """DESIGN §8.19: whoever asked gets no transcript, so its questions come with the update."""
    stored = encode.message_updated(dumps(answer_with("approval-requested")))
    conversation = Network([*greeting(), *chunks("start"), stored, done()]).conversation(screen)
    await conversation.open()
    await conversation.ask("hi")
    assert conversation.messages[-1]["id"] == "a1"
    assert [part["toolCallId"] for part in conversation.questions()] == ["c1"]


async def test_without_a_question_there_is_nothing_to_retry(screen: FakeScreen):
    network = Network(greeting())
    conversation = network.conversation(screen)
    await conversation.open()
    assert await conversation.retry() == ""
    assert network.sent == []


async def test_an_error_ends_the_answer_with_its_text(screen: FakeScreen):
    failed = encode.error_done("{id}", "no luck", message_ids=[], continuation=False)
    conversation = Network([*greeting(), failed]).conversation(screen)
    await conversation.open()
    assert await conversation.ask("hi") == "error"
    assert screen.shown == [("error", "no luck")]


class TestConnecting:
    async def test_a_running_answer_is_joined(self, screen: FakeScreen):
        """spec/01 §10.4."""
        offer = encode.stream_resuming("r")
        frames = [*greeting(first=offer), *chunks("start", request_id="r", replay=True)]
        network = Network([*frames, done("aborted", request_id="r")])
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.resume() == "aborted"
        assert network.sent == [{"type": "cf_agent_stream_resume_ack", "id": "r"}]
        assert screen.shown == ["start", ("aborted", None)]

    async def test_an_answer_that_has_not_begun_is_waited_for(self, screen: FakeScreen):
        """spec/01 §10.3.1."""
        frames = [
            *greeting(first=encode.stream_pending("r")),
            encode.stream_resuming("r"),
            *chunks("start", request_id="r", replay=True),
            done(request_id="r"),
        ]
        network = Network(frames)
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.resume() == "completed"
        assert network.sent_types == ["stream_resume_ack"]

    async def test_when_nothing_runs_nothing_is_followed_or_stopped(self, screen: FakeScreen):
        network = Network(greeting())
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.resume() == ""
        assert await conversation.stop() is False
        assert network.sent == []

    async def test_a_server_that_cannot_set_up_says_why(self, screen: FakeScreen):
        """spec/01 §1.3.7."""
        conversation = Network(['{"error":"the store is locked"}']).conversation(screen)
        with pytest.raises(LinkError, match="the store is locked"):
            await conversation.open()

    async def test_an_agent_without_chat_is_an_error(self, screen: FakeScreen):
        """spec/01 §2.2: its connect sequence begins with the identity."""
        conversation = Network(greeting()[1:]).conversation(screen)
        with pytest.raises(LinkError, match="does not chat"):
            await conversation.open()

    async def test_another_name_is_another_conversation(self, screen: FakeScreen):
        network = Network(greeting(QUESTION), greeting())
        conversation = network.conversation(screen)
        await conversation.open()
        await conversation.open("other")
        assert network.names == ["default", "other"]
        assert conversation.messages == []

    async def test_what_others_do_is_taken_in_between(self, screen: FakeScreen):
        later = [transcript(QUESTION), encode.chat_clear(), transcript(QUESTION)]
        conversation = Network([*greeting(), *later]).conversation(screen)
        await conversation.open()
        await conversation.catch_up()
        assert [message["id"] for message in conversation.messages] == ["u1"]
        assert screen.shown == [("note", "The conversation was cleared elsewhere.")]


class TestALostConnection:
    async def test_the_stream_is_taken_up_and_nothing_is_shown_twice(self, screen: FakeScreen):
        """spec/01 §3.4.3: replayed chunks have the numbers they had."""
        network = Network(
            [*greeting(), *chunks("a", "b"), LOST],
            [LOST],
            [
                *greeting(first=encode.stream_resuming("{id}")),
                *chunks("a", "b", "c", replay=True),
                *chunks("d", start=3),
                done(),
            ],
        )
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.ask("hi") == "completed"
        assert [entry for entry in screen.shown if isinstance(entry, str)] == ["a", "b", "c", "d"]
        assert network.sent_types == ["use_chat_request", "stream_resume_ack"]
        assert network.naps == [0.25, 0.5]

    async def test_servers_that_do_not_number_are_counted(self, screen: FakeScreen):
        bare = [frame.replace(',"seq":0', "").replace(',"seq":1', "") for frame in chunks("a", "b")]
        network = Network(
            [*greeting(), bare[0], LOST],
            [*greeting(first=encode.stream_resuming("{id}")), *bare, done()],
        )
        conversation = network.conversation(screen)
        await conversation.open()
        await conversation.ask("hi")
        assert [entry for entry in screen.shown if isinstance(entry, str)] == ["a", "b"]

    async def test_an_answer_that_ended_meanwhile_is_shown_to_its_end(self, screen: FakeScreen):
        """spec/01 §10.4 case 4: a late acknowledgement gets the whole stream."""
        network = Network(
            [*greeting(), *chunks("a"), LOST],
            [*greeting(QUESTION), *chunks("a", "b", replay=True), done(replay=True)],
        )
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.ask("hi") == "completed"
        assert network.sent_types == ["use_chat_request", "stream_resume_ack"]
        assert screen.shown[-2:] == ["b", ("completed", None)]

    async def test_a_question_that_never_arrived_is_asked_again(self, screen: FakeScreen):
        network = Network(
            [*greeting(), LOST],
            [*greeting(), encode.replay_done("{id}"), *chunks("a"), done()],
        )
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.ask("hi") == "completed"
        assert network.sent_types == ["use_chat_request", "stream_resume_ack", "use_chat_request"]
        assert network.sent[0] == network.sent[2]

    async def test_an_accepted_question_is_waited_for(self, screen: FakeScreen):
        """spec/01 §2.4 (ii)."""
        network = Network(
            [*greeting(), LOST],
            [
                *greeting(first=encode.stream_pending("{id}")),
                encode.stream_resuming("{id}"),
                *chunks("a", replay=True),
                done(),
            ],
        )
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.ask("hi") == "completed"
        assert network.sent_types == ["use_chat_request", "stream_resume_ack"]

    async def test_a_refusal_is_not_tried_again(self, screen: FakeScreen):
        """spec/01 §1.3.3."""
        network = Network([*greeting(), '{"error":"go away"}'])
        conversation = network.conversation(screen)
        await conversation.open()
        with pytest.raises(LinkError, match="go away"):
            await conversation.ask("hi")

    async def test_the_user_hears_of_a_recovery(self, screen: FakeScreen):
        """spec/01 §12.1."""
        frames = [encode.chat_recovering(True, "{id}"), encode.chat_recovering(False, "{id}")]
        conversation = Network([*greeting(), *frames, done()]).conversation(screen)
        await conversation.open()
        await conversation.ask("hi")
        said = [entry[1] for entry in screen.shown if entry[0] == "status"]
        assert said == ["The server takes the answer up again", ""]


class TestQuestions:
    async def test_an_approval_is_sent_and_its_continuation_followed(self, screen: FakeScreen):
        """spec/01 §11.4, §18.52: the probe is answered, then the offer comes."""
        waiting = answer_with("approval-requested")
        network = Network(
            [
                *greeting(QUESTION, waiting),
                encode.stream_pending("c1", "probe"),
                encode.message_updated(dumps(answer_with("approval-responded"))),
                encode.stream_resuming("c1"),
                *chunks("start", request_id="c1", replay=True),
                done(request_id="c1"),
            ]
        )
        conversation = network.conversation(screen)
        await conversation.open()
        [part] = conversation.questions()
        assert await conversation.answer([AnswerToCall(part, allowed=True)]) == "completed"
        assert network.sent[0] == {
            "type": "cf_agent_tool_approval",
            "toolCallId": "c1",
            "approved": True,
            "autoContinue": True,
        }
        assert network.sent_types[1:] == ["stream_resume_request", "stream_resume_ack"]
        assert screen.shown == [("update", "a1"), "start", ("completed", None)]
        assert conversation.questions() == []

    @pytest.mark.parametrize("transcript_first", [True, False])
    async def test_a_continuation_that_is_over_before_we_join_it_is_shown(
        self, screen: FakeScreen, *, transcript_first: bool
    ):
        """spec/01 §10.4: of such a one come a bare end and, before or behind it, the transcript."""
        waiting = answer_with("approval-requested")
        denied = answer_with("output-denied")
        denied["parts"] += [{"type": "text", "text": "I did"}, {"type": "text", "text": " not."}]
        end = encode.done("c1", message_ids=[], outcome="completed", continuation=True, replay=True)
        last = [transcript(QUESTION, denied), end]
        network = Network(
            [
                *greeting(QUESTION, waiting),
                encode.stream_pending("c1", "{probe}"),
                encode.stream_resuming("c1"),
                *(last if transcript_first else reversed(last)),
                encode.stream_resume_none("idle", "{probe}"),
            ]
        )
        conversation = network.conversation(screen)
        await conversation.open()
        [part] = conversation.questions()
        assert await conversation.answer([AnswerToCall(part, allowed=False)]) == "completed"
        assert screen.text == "I did not."
        assert screen.shown[-1] == ("completed", None)

    async def test_a_continuation_that_ends_while_we_are_away_is_shown_from_there_on(
        self, screen: FakeScreen
    ):
        waiting = answer_with("approval-requested")
        denied = answer_with("output-denied")
        denied["parts"] += [{"type": "text", "text": "I did not."}]
        begun = encode.chunk_frame_maker("c1", continuation=True)
        body = dumps({"type": "text-delta", "delta": "I did"})
        end = encode.done("c1", message_ids=[], outcome="completed", continuation=True, replay=True)
        network = Network(
            [
                *greeting(QUESTION, waiting),
                encode.stream_resuming("c1", "{probe}"),
                begun(body, 0),
                LOST,
            ],
            [
                *greeting(QUESTION, denied),
                end,
                transcript(QUESTION, denied),
                encode.stream_resume_none("idle", "{probe}"),
            ],
        )
        conversation = network.conversation(screen)
        await conversation.open()
        [part] = conversation.questions()
        assert await conversation.answer([AnswerToCall(part, allowed=False)]) == "completed"
        assert screen.text == "I did not."

    async def test_an_answer_that_starts_nothing_ends(self, screen: FakeScreen):
        """spec/01 §10.2.5: somebody else was faster."""
        waiting = answer_with("approval-requested")
        none = encode.stream_resume_none("idle", "probe")
        network = Network([*greeting(QUESTION, waiting), none])
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.answer([AnswerToCall(conversation.questions()[0], False)]) == ""

    async def test_a_call_for_a_client_of_our_own_turn_is_declined(self, screen: FakeScreen):
        """spec/01 §11.2: a server may declare a tool without a handler."""
        body = '{"type":"tool-input-available","toolCallId":"c1","toolName":"delete","input":{}}'
        frame = encode.chunk_frame_maker("{id}", continuation=False)(body, 0)
        network = Network(
            [
                *greeting(),
                frame,
                transcript(QUESTION, answer_with("input-available")),
                done(),
                encode.stream_resume_none("idle", "probe"),
            ]
        )
        conversation = network.conversation(screen)
        await conversation.open()
        await conversation.ask("hi")
        [part] = conversation.foreign_calls()
        await conversation.answer([AnswerToCall(part)])
        declined = network.sent[1]
        assert declined["state"] == "output-error"
        assert declined["errorText"] == "This client is a terminal and cannot run delete."

    async def test_a_call_that_waits_for_somebody_elses_browser_is_left_alone(
        self, screen: FakeScreen
    ):
        network = Network(greeting(QUESTION, answer_with("input-available")))
        conversation = network.conversation(screen)
        await conversation.open()
        assert conversation.foreign_calls() == []


class TestCalls:
    """spec/01 §5.2."""

    async def test_a_call_gives_its_result(self, screen: FakeScreen):
        reply = encode.rpc_result("{call}", [1])
        network = Network([*greeting(), *chunks("other", request_id="x"), reply])
        conversation = network.conversation(screen)
        await conversation.open()
        assert await conversation.call("getBranches", None) == [1]
        assert (network.sent[0]["method"], network.sent[0]["args"]) == ("getBranches", [None])

    async def test_a_call_that_fails_raises_the_text(self, screen: FakeScreen):
        reply = encode.rpc_error("{call}", "no such method")
        conversation = Network([*greeting(), reply]).conversation(screen)
        await conversation.open()
        with pytest.raises(CallError, match="no such method"):
            await conversation.call("nope")


class TestClearing:
    @pytest.mark.parametrize("refused", [False, True])
    async def test_what_the_server_sends_back_says_whether_it_was_done(
        self, screen: FakeScreen, refused: bool
    ):
        """spec/01 §5: its sender is sent nothing; of a refused clear, the transcript."""
        network = Network([*greeting(QUESTION)])
        conversation = network.conversation(screen)
        await conversation.open()
        truth = [transcript(QUESTION)] if refused else []
        network.say(*truth, encode.stream_resume_none("idle", "{probe}"))
        assert await conversation.clear() is not refused
        assert conversation.messages == ([QUESTION] if refused else [])
        assert network.sent_types == ["chat_clear", "stream_resume_request"]


async def test_whoever_is_refused_leaves_no_connection_open(screen: FakeScreen):
    network = Network(['{"error":"go away"}'])
    conversation = network.conversation(screen)
    with pytest.raises(LinkError, match="go away"):
        await conversation.open()
    assert network.open == 0
