"""What the checker says about evidence, promise by promise; `test_broken_apps.py` has real runs."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell.core import json
from thinkwell.messages.message import user_message
from thinkwell.testing.chaos.evidence import (
    ClientLog,
    Evidence,
    EvidentMessage,
    EvidentTurn,
    client_log,
)
from thinkwell.testing.chaos.promises import Finding, findings_of

AGENT = "shop/a"
QUESTION = "chaos k1.c0.q0: say 2"
WORDS = "k1.c0.q0.0.0 k1.c0.q0.0.1 "


def chunks(text: str = WORDS) -> tuple[str, ...]:
    made: list[dict[str, Any]] = [
        {"type": "start", "messageId": "r1"},
        {"type": "start-step"},
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": text},
        {"type": "text-end", "id": "t"},
        {"type": "finish-step"},
        {"type": "finish"},
    ]
    return tuple(json.dumps(chunk) for chunk in made)


def turn(**changed: Any) -> EvidentTurn:
    fields: dict[str, Any] = {
        "agent": AGENT,
        "id": "chaos-k1.c0.q0",
        "seq": 1,
        "status": "completed",
        "stop_reason": "end",
        "error": None,
        "continuation": False,
        "message_id": "r1",
        "attempts": 1,
        "created_at": 100.0,
        "settled_at": 110.0,
        "inputs": ("m-chaos-k1.c0.q0",),
        "bodies": chunks(),
    }
    return EvidentTurn(**{**fields, **changed})


def stored(text: str = WORDS) -> list[EvidentMessage]:
    from thinkwell.testing.chaos.streams import folded

    question = user_message("m-chaos-k1.c0.q0", QUESTION)
    reply = folded("r1", chunks(text))
    return [EvidentMessage(1, None, question), EvidentMessage(2, question["id"], reply)]


def client(*lines: dict[str, Any]) -> ClientLog:
    sent = {"event": "sent", "id": "chaos-k1.c0.q0", "question": QUESTION}
    begin: list[dict[str, Any]] = [{"event": "agent", "agent": AGENT}, {"event": "open", "life": 1}]
    return client_log("client-0", [*begin, sent, *lines])


def read(seq: int, body: str | None = None, **more: Any) -> dict[str, Any]:
    text = chunks()[seq] if body is None else body
    return {"event": "response", "id": "chaos-k1.c0.q0", "seq": seq, "body": text, **more}


END = {"event": "response", "id": "chaos-k1.c0.q0", "body": "", "done": True}
WHOLE = [*(read(seq) for seq in range(7)), END]


def evidence(**changed: Any) -> Evidence:
    one = turn()
    fields: dict[str, Any] = {
        "turns": {(AGENT, one.id): one},
        "messages": {AGENT: stored()},
        "calls": [],
        "effects": [],
        "clients": [client(*WHOLE)],
        "lives": [],
    }
    return Evidence(**{**fields, **changed})


def only(found: list[Finding]) -> tuple[str, str, str]:
    (finding,) = found
    return finding.promise, finding.kind, finding.what


def with_turn(**changed: Any) -> Evidence:
    one = turn(**changed)
    return evidence(turns={(AGENT, one.id): one})


def test_a_good_run_has_no_findings():
    assert findings_of(evidence()) == []


class TestLost:
    def test_a_turn_that_a_client_was_told_of_and_that_is_gone(self):
        found = findings_of(evidence(turns={}))
        assert {(f.promise, f.kind) for f in found} == {("P1", "lost")}

    def test_a_question_that_was_refused_is_none(self):
        refused = {**END, "error": True}
        assert findings_of(evidence(turns={}, messages={}, clients=[client(refused)])) == []

    def test_a_question_that_is_not_in_the_conversation(self):
        found = findings_of(evidence(messages={AGENT: stored()[1:]}))
        assert ("P1", "lost") in {(f.promise, f.kind) for f in found}

    def test_a_chunk_that_a_client_read_and_that_is_not_stored(self):
        lines = [read(0), read(1), read(2), read(3, '{"type":"text-delta"}'), END]
        promise, kind, what = only(findings_of(evidence(clients=[client(*lines)])))
        assert (promise, kind) == ("P1", "lost")
        assert "chunk 3" in what

    def test_a_gap_in_what_a_client_read(self):
        lines = [read(0), read(2), END]
        assert only(findings_of(evidence(clients=[client(*lines)])))[:2] == ("P1", "lost")

    def test_a_word_that_the_reply_does_not_say(self):
        short = "k1.c0.q0.0.1 "
        one = turn(bodies=chunks(short))
        found = findings_of(
            evidence(turns={(AGENT, one.id): one}, messages={AGENT: stored(short)}, clients=[])
        )
        assert only(found) == ("P1", "lost", "it does not say 'k1.c0.q0.0.0'")

    def test_a_stored_reply_that_its_stream_does_not_make(self):
        found = findings_of(evidence(messages={AGENT: stored("k1.c0.q0.0.0 ")}))
        assert {f.promise for f in found} == {"P1"}


class TestDoubled:
    def test_a_word_that_the_reply_says_twice(self):
        twice = WORDS + "k1.c0.q0.0.1 "
        one = turn(bodies=chunks(twice))
        found = findings_of(
            evidence(turns={(AGENT, one.id): one}, messages={AGENT: stored(twice)}, clients=[])
        )
        assert only(found) == ("P3", "doubled", "it says 'k1.c0.q0.0.1' 2 times")

    def test_a_chunk_that_a_client_read_twice_without_having_asked(self):
        lines = [read(0), read(1), read(1), END]
        assert only(findings_of(evidence(clients=[client(*lines)])))[:2] == ("P3", "doubled")

    def test_a_replay_that_the_client_asked_for_is_none(self):
        offer = {"event": "offer", "id": "chaos-k1.c0.q0"}
        lines = [read(0), read(1), offer, *(read(seq, replay=True) for seq in range(7)), END]
        assert findings_of(evidence(clients=[client(*lines)])) == []

    def test_two_replies_to_one_question(self):
        messages = [*stored(), msg := stored()[1]]
        other = {**msg.message, "id": "r2"}
        messages[-1] = EvidentMessage(3, msg.parent, other)  # pyright: ignore[reportArgumentType]
        assert only(findings_of(evidence(messages={AGENT: messages})))[:2] == ("P3", "doubled")

    def test_a_part_that_is_begun_twice(self):
        body = chunks()
        found = findings_of(with_turn(bodies=(*body[:5], body[2], body[4], *body[5:])))
        assert "P3" in {f.promise for f in found}

    def test_chunks_that_came_in_the_wrong_order(self):
        lines = [read(0), read(2), read(1), END]
        kinds = {f.kind for f in findings_of(evidence(clients=[client(*lines)]))}
        assert "lost" in kinds  # the gap is seen first


def run_of(life: int, *, effect: str = "once", **more: Any) -> dict[str, Any]:
    return {
        "moment": "begin",
        "life": life,
        "agent": AGENT,
        "turn": "chaos-k1.c0.q0",
        "call": "k1.c0.q0.0.0~x",
        "key": "key",
        "tool": "pay",
        "effect": effect,
        "reconcile": False,
        **more,
    }


class TestEffects:
    def test_a_once_tool_that_ran_in_two_lives(self):
        found = findings_of(evidence(effects=[run_of(1), run_of(2)]))
        assert only(found) == ("P2", "doubled", "pay is declared 'once' and ran twice")

    @pytest.mark.parametrize("effect", ["pure", "idempotent"])
    def test_a_tool_that_may_run_again_after_a_crash(self, effect: str):
        effects = [run_of(1, effect=effect), run_of(2, effect=effect)]
        assert findings_of(evidence(effects=effects)) == []

    def test_no_tool_may_run_twice_in_one_life(self):
        effects = [run_of(1, effect="pure"), run_of(1, effect="pure")]
        assert only(findings_of(evidence(effects=effects)))[0] == "P2"

    def test_a_call_asked_for_again_under_another_id_is_the_same_call(self):
        effects = [run_of(1), run_of(2, call="k1.c0.q0.0.0~y", key="other")]
        assert only(findings_of(evidence(effects=effects)))[0] == "P2"

    def test_a_tool_whose_author_can_say_what_happened_may_run_again(self):
        effects = [run_of(1, reconcile=True), run_of(2, reconcile=True)]
        assert findings_of(evidence(effects=effects)) == []

    def test_no_tool_may_run_once_more_after_a_client_has_read_its_result(self):
        result = json.dumps({"type": "tool-output-available", "toolCallId": "k1.c0.q0.0.0~x"})
        one = turn(bodies=(chunks()[0], result))
        effects = [run_of(1, effect="pure"), run_of(2, effect="pure")]
        told = client(read(0), read(1, result), END)
        found = findings_of(evidence(turns={(AGENT, one.id): one}, clients=[told], effects=effects))
        assert "pay ran again after a client had read its result" in {f.what for f in found}


class TestStuck:
    def test_a_turn_that_has_not_ended(self):
        found = findings_of(with_turn(status="running", settled_at=None))
        assert only(found) == ("P4", "stuck", "it is still 'running'")

    def test_a_client_that_never_read_the_end(self):
        found = findings_of(evidence(clients=[client(*WHOLE[:-1])]))
        assert only(found)[:2] == ("P4", "stuck")

    def test_a_client_that_was_cut_off_may_not_have(self):
        lines = [*WHOLE[:-1], {"event": "cut", "why": "ConnectionClosedError"}]
        assert findings_of(evidence(clients=[client(*lines)])) == []

    def test_a_client_that_is_still_told_of_a_recovery(self):
        frame = {"type": "cf_agent_chat_recovering", "recovering": True, "id": "chaos-k1.c0.q0"}
        found = findings_of(evidence(clients=[client(*WHOLE, {"event": "frame", "frame": frame})]))
        assert only(found)[:2] == ("P4", "stuck")


class TestUnbounded:
    def test_attempts_that_nothing_explains(self):
        found = findings_of(with_turn(attempts=3))
        assert only(found)[:2] == ("P5", "unbounded")

    def test_a_death_explains_an_attempt(self):
        one = turn(attempts=2)
        lives = [{"ended": 105.0, "deleted": []}]
        assert findings_of(evidence(turns={(AGENT, one.id): one}, lives=lives)) == []

    def test_model_calls_that_nobody_saw_the_end_of(self):
        found = findings_of(with_turn(requests=9, answered=2))
        assert only(found)[:2] == ("P5", "unbounded")


def test_what_the_run_deleted_itself_is_not_lost():
    assert findings_of(evidence(turns={}, messages={}, deleted=frozenset({AGENT}))) == []


def test_an_app_that_rewrites_replies_is_not_held_to_the_script():
    one = turn(bodies=chunks("SOMETHING ELSE"))
    given = evidence(
        turns={(AGENT, one.id): one},
        messages={AGENT: stored("SOMETHING ELSE")},
        clients=[],
        rewrites=True,
    )
    assert findings_of(given) == []
