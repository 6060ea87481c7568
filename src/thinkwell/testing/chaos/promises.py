"""The five promises (spec/04 §0), held against the evidence of a run.

P1 nothing accepted is lost · P2 no effect happens twice unless it was declared safe · P3 no text
twice · P4 no endless spinner · P5 no endless bill. Each check is a pure function from `Evidence` to
what it found; a finding names the turn and the lives it was in, which is how it is reproduced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import msgspec

from thinkwell.messages.message import text_of
from thinkwell.testing.chaos.evidence import ClientLog, Evidence, EvidentTurn, JsonLine, TurnKey
from thinkwell.testing.chaos.model import place_of
from thinkwell.testing.chaos.plan import Script, read_script
from thinkwell.testing.chaos.readings import Reading
from thinkwell.testing.chaos.streams import folded, stream_problem

PromiseName = Literal["P1", "P2", "P3", "P4", "P5"]
Kind = Literal["lost", "doubled", "out of order", "stuck", "unbounded"]
REPEATABLE = frozenset({"pure", "idempotent", "tx"})
"""Effects that may be had again after a crash, as their author says."""
UNSETTLED = ("accepted", "running")
ROUNDING = 1.0
"""Seconds that a stored time and the time of a death may be apart, though they belong together."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that was broken once."""

    promise: PromiseName
    kind: Kind
    what: str
    agent: str = ""
    turn: str = ""
    tool: str = ""


def findings_of(evidence: Evidence) -> list[Finding]:
    """Everything that is wrong, P1 first."""
    checks = (accepted_is_kept, told_is_stored, replies_are_whole, streams_are_legal)
    more = (effects_happen_once, readings_are_clean, everything_ends, nothing_runs_away)
    found = [finding for check in (*checks, *more) for finding in check(evidence)]
    kept = [finding for finding in found if finding.agent not in evidence.deleted]
    return sorted(kept, key=lambda finding: finding.promise)


# P1


def accepted_is_kept(evidence: Evidence) -> Iterator[Finding]:
    """What a client heard of has a turn; what a turn brought is in the conversation once."""
    for client in evidence.clients:
        for request in _heard(client):
            if (client.agent, request) not in evidence.turns:
                what = f"{client.name} was told of it, and there is no such turn"
                yield _finding("P1", "lost", what, (client.agent, request))
    for turn in evidence.turns.values():
        if turn.status == "completed":
            yield from _input_kept(evidence, turn)
    for agent in evidence.messages:
        yield from _in_order(evidence, agent)


def _heard(client: ClientLog) -> set[str]:
    """Requests of its own that it got a chunk or a good end of, or saw in a transcript."""
    own = {line["id"] for line in client.lines if line["event"] == "sent"}
    heard = {
        line["id"] for line in client.lines if line["event"] == "response" and not line.get("error")
    }
    shown = {i for line in client.lines if line["event"] == "transcript" for i in line["ids"]}
    return {request for request in own if request in heard or f"m-{request}" in shown}


def _input_kept(evidence: Evidence, turn: EvidentTurn) -> Iterator[Finding]:
    ids = Counter(stored.message["id"] for stored in evidence.messages.get(turn.agent, []))
    for message in turn.inputs:
        if ids[message] == 0:
            yield _of(turn, "P1", "lost", f"its question {message} is not in the conversation")
        elif ids[message] > 1:
            yield _of(
                turn, "P3", "doubled", f"its question {message} is stored {ids[message]} times"
            )


def _in_order(evidence: Evidence, agent: str) -> Iterator[Finding]:
    """Questions stand in the conversation in the order in which they were accepted."""
    asked = [t for t in evidence.turns.values() if t.agent == agent and t.status == "completed"]
    order = [message for turn in sorted(asked, key=lambda t: t.seq) for message in turn.inputs]
    places = {stored.message["id"]: n for n, stored in enumerate(evidence.messages[agent])}
    stored = [message for message in order if message in places]
    for before, after in pairwise(stored):
        if places[before] > places[after]:
            what = f"{after} stands before {before}, which was accepted first"
            yield _finding("P1", "out of order", what, (agent, after.removeprefix("m-")))


def told_is_stored(evidence: Evidence) -> Iterator[Finding]:
    """Whatever any client read is what the journal holds at that place."""
    for client in evidence.clients:
        for reading in client.readings:
            turn = evidence.turns.get((client.agent, reading.request))
            if turn is None or turn.bodies is None:
                continue
            for seq, body in reading.chunks:
                if seq >= len(turn.bodies) or turn.bodies[seq] != body:
                    what = f"{client.name} read a chunk {seq} that is not stored"
                    yield _of(turn, "P1", "lost", what)
                    break


def replies_are_whole(evidence: Evidence) -> Iterator[Finding]:
    """A completed reply is stored once and says what the script says, each word once."""
    for agent, stored in evidence.messages.items():
        questions = {s.message["id"]: text_of(s.message) for s in stored}
        written: dict[str, list[EvidentTurn]] = {}
        for turn in evidence.turns.values():
            if turn.agent == agent and turn.message_id is not None:
                written.setdefault(turn.message_id, []).append(turn)
        ids = Counter(s.message["id"] for s in stored)
        for message_id, turns in written.items():
            if turns[-1].status == "completed" and turns[-1].bodies and not ids[message_id]:
                yield _of(turns[-1], "P1", "lost", "its reply is not stored")
        for s in stored:
            script = read_script(questions.get(s.parent or "", ""))
            turns = written.get(s.message["id"])
            if s.message["role"] == "assistant" and script is not None and turns:
                yield from _words(evidence, script, text_of(s.message), turns[-1])
        yield from _one_reply_each(agent, evidence)


def _words(evidence: Evidence, script: Script, said: str, turn: EvidentTurn) -> Iterator[Finding]:
    if evidence.rewrites or not evidence.scripted:
        return
    whole = turn.status == "completed" and turn.stop_reason == "end"
    if said == script.text or (not whole and script.text.startswith(said)):
        return
    counts = Counter(said.split())
    twice = [word for word, times in counts.items() if times > 1]
    missing = [word for word in script.text.split() if word not in counts]
    if twice:
        yield _of(turn, "P3", "doubled", f"it says {twice[0]!r} {counts[twice[0]]} times")
    elif missing:
        yield _of(turn, "P1", "lost", f"it does not say {missing[0]!r}")
    else:
        yield _of(turn, "P3", "out of order", "it does not say its words in their order")


def _one_reply_each(agent: str, evidence: Evidence) -> Iterator[Finding]:
    """No question has two replies: nobody asked for another one."""
    replies: dict[str, list[str]] = {}
    for stored in evidence.messages[agent]:
        if stored.message["role"] == "assistant" and stored.parent is not None:
            replies.setdefault(stored.parent, []).append(stored.message["id"])
    for question, ids in replies.items():
        if len(ids) > 1 and question.startswith("m-chaos-"):
            what = f"its question has {len(ids)} replies"
            yield _finding("P3", "doubled", what, (agent, question.removeprefix("m-")))


# P2


def effects_happen_once(evidence: Evidence) -> Iterator[Finding]:
    """No run of a tool that its author did not allow; none at all after its result was told."""
    told = _told_results(evidence)
    for group in grouped_runs(evidence.effects).values():
        first, *again = group
        for run in again:
            yield from _second_run(first, run, told.get((first["agent"], first["call"])))


def grouped_runs(effects: list[JsonLine]) -> dict[tuple[str, str], list[JsonLine]]:
    """Beginnings of tool runs by the call they belong to, oldest first.

    A model may ask again, under another id, for a call that was cut: the script knows that it is
    the same one.
    """
    groups: dict[tuple[str, str], list[JsonLine]] = {}
    for line in effects:
        if line["moment"] == "begin":
            call = place_of(line["call"]) or line["key"]
            groups.setdefault((line["agent"], call), []).append(line)
    return groups


def _second_run(first: JsonLine, run: JsonLine, told_in: int | None) -> Iterator[Finding]:
    tool, effect = str(run["tool"]), str(run["effect"])
    if told_in is not None and run["life"] > told_in:
        what = f"{tool} ran again after a client had read its result"
    elif effect not in REPEATABLE and not run["reconcile"]:
        what = f"{tool} is declared {effect!r} and ran twice"
    elif run["life"] == first["life"]:
        what = f"{tool} ran twice in one life of the process, with no crash in between"
    else:
        return
    finding = _finding("P2", "doubled", what, (str(run["agent"]), str(run["turn"])))
    yield msgspec.structs.replace(finding, tool=tool)


def _told_results(evidence: Evidence) -> dict[tuple[str, str], int]:
    """In which life a client first read the result of a call."""
    told: dict[tuple[str, str], int] = {}
    for client in evidence.clients:
        for reading in client.readings:
            for call in reading.results:
                key = (client.agent, call)
                told[key] = min(told.get(key, reading.life), reading.life)
    return told


# P3


def readings_are_clean(evidence: Evidence) -> Iterator[Finding]:
    """Each time a client read a stream, it read each chunk once and in order."""
    for client in evidence.clients:
        for reading in client.readings:
            problem = _unclean(reading)
            if problem is not None:
                kind, what = problem
                promise: PromiseName = "P1" if kind == "lost" else "P3"
                where = (client.agent, reading.request)
                yield _finding(promise, kind, f"{client.name} {what}", where)


def _unclean(reading: Reading) -> tuple[Kind, str] | None:
    numbers = [seq for seq, _ in reading.chunks]
    for before, after in pairwise(numbers):
        if after == before:
            return "doubled", f"read chunk {after} twice"
        if after < before:
            return "out of order", f"read chunk {after} after {before}"
        # A continuation is told without what the client knows already.
        if after > before + 1 and not reading.continuation:
            return "lost", f"read chunk {after} after {before}, and nothing in between"
    if numbers and numbers[0] != 0 and not reading.continuation:
        return "lost", f"began to read at chunk {numbers[0]}"
    return None


def streams_are_legal(evidence: Evidence) -> Iterator[Finding]:
    """However many processes wrote it, a journal is one stream, and the reply is what it makes."""
    stored = {
        (agent, s.message["id"]): s.message
        for agent, messages in evidence.messages.items()
        for s in messages
    }
    for turn in evidence.turns.values():
        if not turn.bodies or turn.status in UNSETTLED:
            continue
        problem = stream_problem(turn.bodies, completed=turn.status == "completed")
        if problem is not None:
            yield _of(turn, "P3", "doubled" if "twice" in problem else "out of order", problem)
        elif _alone(turn, evidence) and not evidence.rewrites:
            reply = stored.get((turn.agent, turn.message_id or ""))
            if reply is not None and reply != folded(reply["id"], turn.bodies):
                yield _of(turn, "P1", "lost", "its stored reply is not what its stream makes")


def _alone(turn: EvidentTurn, evidence: Evidence) -> bool:
    """Whether its reply is written by no other turn, and waits for nobody."""
    return (
        turn.status == "completed"
        and turn.stop_reason == "end"
        and not turn.continuation
        and sum(t.message_id == turn.message_id for t in evidence.turns.values()) == 1
    )


# P4


def everything_ends(evidence: Evidence) -> Iterator[Finding]:
    """At the end of the run no turn is unsettled, and no client still shows a spinner."""
    for turn in evidence.turns.values():
        if turn.status in UNSETTLED:
            yield _of(turn, "P4", "stuck", f"it is still {turn.status!r}")
    for client in evidence.clients:
        for request in _spinning(client):
            what = f"{client.name} was never told that it ended"
            yield _finding("P4", "stuck", what, (client.agent, request))


def _spinning(client: ClientLog) -> set[str]:
    """Streams whose end it had not read when it was connected for the last time."""
    streaming: set[str] = set()
    recovering: set[str] = set()
    for line in client.lines:
        if line["event"] in ("open", "cut", "closed"):
            streaming, recovering = set(), set()
        elif line["event"] == "response":
            (streaming.discard if line.get("done") else streaming.add)(line["id"])
        elif line["event"] == "frame":
            _note_recovering(line["frame"], recovering)
    return streaming | recovering


def _note_recovering(frame: JsonLine, recovering: set[str]) -> None:
    if frame.get("type") == "cf_agent_chat_recovering":
        request = str(frame.get("id", ""))
        (recovering.add if frame["recovering"] else recovering.discard)(request)


# P5


def nothing_runs_away(evidence: Evidence) -> Iterator[Finding]:
    """Each further attempt has a death, a stop or a failure behind it; so has each model call."""
    for turn in evidence.turns.values():
        if turn.settled_at is None:
            continue
        begin, end = turn.created_at - ROUNDING, turn.settled_at + ROUNDING
        deaths = [life for life in evidence.lives if begin <= life["ended"] <= end]
        if turn.attempts - 1 > len(deaths) + turn.failures:
            what = f"{turn.attempts} attempts, but only {len(deaths)} processes ended meanwhile"
            yield _of(turn, "P5", "unbounded", what)
        cut = turn.requests - turn.answered
        if turn.bodies is not None and cut > max(turn.attempts, 1):
            what = f"{cut} model calls were cut in {turn.attempts} attempts"
            yield _of(turn, "P5", "unbounded", what)


def _of(turn: EvidentTurn, promise: PromiseName, kind: Kind, what: str) -> Finding:
    return _finding(promise, kind, what, (turn.agent, turn.id))


def _finding(promise: PromiseName, kind: Kind, what: str, where: TurnKey) -> Finding:
    agent, turn = where
    return Finding(promise=promise, kind=kind, what=what, agent=agent, turn=turn)


def changes_words(evidence: Evidence) -> bool:
    """Whether the app rewrites replies: then the rehearsal does not say what its script says."""
    for agent, stored in evidence.messages.items():
        if "/chaos-rehearsal-" not in agent:
            continue
        texts: dict[str, Any] = {s.message["id"]: text_of(s.message) for s in stored}
        for s in stored:
            script = read_script(texts.get(s.parent or "", ""))
            done = s.message["role"] == "assistant" and script is not None
            if done and script is not None and not script.text.startswith(text_of(s.message)):
                return True
    return False
