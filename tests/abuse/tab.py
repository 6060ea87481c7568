"""A browser tab with the npm chat hook in it, as far as a transcript and a status go.

The rules are those of `useAgentChat` (agents 0.32) with `resume` on and client tools: who asked
folds its own stream and keeps it at the end of the list (spec/01 §9.4), whoever else is connected
folds what it observes, S6 replaces, S8 updates, S9 empties, an offered stream is taken exactly once
(§10.2-10.4), and a socket that closes ends local streams with an error until the probe after the
reconnect says what became of them. `Tab` is pure: frames in, frames out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal

from tests.abuse import client_frames
from tests.abuse.client_frames import Frame
from tests.abuse.npm_fold import (
    Chunk,
    LocalStream,
    Message,
    Observed,
    SdkMessage,
    StreamError,
    chunk_of,
    index_of,
    seed_of,
)
from tests.abuse.shown_list import ShownList

Status = Literal["ready", "submitted", "streaming", "error"]


class Tab:
    """One tab; `send` takes what it says while its socket is open."""

    def __init__(self, name: str, send: Callable[[Frame], None]) -> None:
        self.name = name
        self._send = send
        self._made = 0
        self.list = ShownList()
        self.status: Status = "ready"
        self.error = ""
        self._local: dict[str, LocalStream | None] = {}
        self._continuing: LocalStream | None = None
        self._wants_continuation = False
        self._observed: Observed | None = None
        self._probe: str | None = None
        self._acked: set[str] = set()
        self._expects_replay: set[str] = set()
        self._starts: dict[str, str] = {}
        self._turn: str | None = None
        self._probe_owed = False
        self._applied: dict[str, int] = {}
        self._online = False
        self._stopped: set[str] = set()
        self.cut: set[str] = set()
        """Answers it stopped: it shows the words it had, the server stored what came after."""

    @property
    def messages(self) -> list[Message]:
        """What it shows."""
        return self.list.messages

    @property
    def waits(self) -> list[str]:
        """What it waits for: nothing, at rest."""
        found = [f"the stream {name}" for name, stream in self._local.items() if stream is not None]
        found += [f"the answer to {self._probe}"] if self._probe is not None else []
        found += ["a continuation"] if self._continuing or self._wants_continuation else []
        if self._observed is not None:
            found.append(f"the end of {self._observed.request_id}")
        return found + ([self.status] if self.status in ("submitted", "streaming") else [])

    # What a person does

    def submit(self, text: str) -> None:
        """Send a new message."""
        message = {"id": self._id("u"), "role": "user", "parts": [{"type": "text", "text": text}]}
        streaming = self.status == "streaming"
        self.list.put(message)
        if not self._online:
            self.list.keep_unsent(message["id"])
        self._request("submit-message")
        if streaming:
            self.list.protect_tail()

    def edit(self, message_id: str, text: str) -> None:
        """Change an earlier question: what came after it goes."""
        index = index_of(self.messages, message_id)
        parts = [{"type": "text", "text": text}]
        changed = {"id": message_id, "role": "user", "parts": parts}
        self.list.messages = [*self.messages[:index], changed]
        self._request("submit-message")

    def regenerate(self) -> None:
        """Ask for another answer to the last question."""
        keep = len(self.messages) - (self.messages[-1]["role"] == "assistant")
        self.list.messages = self.messages[:keep]
        self._request("regenerate-message")

    def stop(self) -> None:
        """Stop the turn this tab is attached to."""
        request_id, self._turn = self._turn, None
        if request_id is not None:
            self._send(client_frames.cancel(request_id))
            if self._local.get(request_id) is not None:
                self.cut.add(self._starts.get(request_id, ""))
                self._stopped.add(request_id)
                self._local[request_id] = None  # its frames are still known as local
                self.status = "ready"
        stream, self._continuing = self._continuing, None
        if stream is not None:
            if stream.request_id is not None:
                self._send(client_frames.cancel(stream.request_id))
                self._local[stream.request_id] = None
            self.status = "ready"
            self._next()

    def clear(self) -> None:
        """Delete the conversation."""
        self._forget_chat()
        self._send(client_frames.clear())

    def answer(self, call_id: str, output: Any) -> None:
        """Give the result of a client tool."""
        self._send(client_frames.tool_result(call_id, output))
        self.list.change_call(call_id, {"state": "output-available", "output": output})
        self._continue()

    def decide(self, call_id: str, *, approved: bool) -> None:
        """Allow or refuse a call."""
        self._send(client_frames.approval(call_id, approved=approved))
        self.list.change_call(call_id, {"state": "approval-responded"})
        self._continue()

    # What the socket does

    def opened(self, *, first: bool) -> None:
        """The socket is open: ask for a stream to join."""
        self._online = self._probe_owed = True
        if first:
            self._probe_now()
        else:
            self._next()

    def closed(self) -> None:
        """The socket is gone: local streams end with an error until the probe says more."""
        self._online = False
        # The hook keeps it until it hears of an idle agent, and if that never comes it shows the
        # words of a stream that was deleted meanwhile. No server can know what it still holds.
        self._observed = None
        self._acked.clear()
        self.list.unprotect()
        for stream in [*self._local.values(), self._continuing]:
            if stream is None:
                continue
            self._flush(stream)
            self.status = "ready" if stream.request_id is None else "error"
        self._local = {}
        self._continuing = None

    def receive(self, frame: Frame) -> None:
        """Take in one frame."""
        match frame["type"]:
            case "cf_agent_chat_messages":
                connect = frame.get("connect", False)
                self.list.replace(frame["messages"], self._observed, connect=connect)
            case "cf_agent_message_updated":
                self.list.update(frame["message"])
            case "cf_agent_chat_clear":
                self._forget_chat()
                self._observed = None
            case "cf_agent_stream_resuming":
                self._offered(frame["id"])
            case "cf_agent_stream_resume_none":
                self._nothing_to_join(frame)
            case "cf_agent_use_chat_response":
                self._response(frame)
            case _:
                pass
        self._next()

    # Requests and probes

    def _request(self, trigger: str) -> None:
        request_id = self._id("q")
        last = self.messages[-1] if self.messages else None
        seed = (
            last if trigger == "submit-message" and last and last["role"] == "assistant" else None
        )
        self._local[request_id] = LocalStream(
            request_id, SdkMessage(self._id("a"), seed), resumed=False
        )
        self._turn = request_id
        self.status = "submitted"
        self._send(client_frames.chat_request(request_id, self.messages, trigger))

    def _continue(self) -> None:
        self._wants_continuation |= self._continuing is None

    def _next(self) -> None:
        """Start what had to wait until the chat is ready."""
        if self._wants_continuation and self.status == "error":
            self._wants_continuation = False
        if self._probe is not None or self._continuing is not None:
            if self._probe is not None and self._probe_owed:
                self._probe_now()
            return
        if self._wants_continuation and self.status == "ready":
            self._wants_continuation = False
            stream = LocalStream(
                None, SdkMessage(self._id("a"), seed_of(self.list.last)), resumed=True
            )
            stream.probe = self._id("p")
            self._continuing = stream
            self.status = "submitted"
            self._send(client_frames.probe(stream.probe))
        elif self._probe_owed and self.status in ("ready", "error"):
            self._probe_now()

    def _probe_now(self) -> None:
        self._probe_owed = False
        self._probe = self._probe or self._id("p")
        self._send(client_frames.probe(self._probe))

    def _offered(self, request_id: str) -> None:
        waiting = self._continuing
        if waiting is None and not self._wants_continuation:
            self._expects_replay.add(request_id)
        if waiting is not None and waiting.request_id is None:
            waiting.request_id = request_id
            self._local[request_id] = waiting
            self._send(client_frames.ack(request_id))
        elif self._probe is not None:
            self._probe = None
            stream = LocalStream(
                request_id, SdkMessage(self._id("a"), seed_of(self.list.last)), resumed=True
            )
            self._local[request_id] = stream
            self._turn = request_id
            self.status = "submitted"
            self._send(client_frames.ack(request_id))
        elif request_id not in self._local and request_id not in self._acked:
            self._wants_continuation = False
            self._observed = Observed(request_id, self._id("a"))
            self._turn = request_id
            self._acked.add(request_id)
            self._send(client_frames.ack(request_id))

    def _nothing_to_join(self, frame: Frame) -> None:
        asked = frame.get("probeId")
        waiting = self._continuing
        if waiting is not None and waiting.request_id is None and asked in (None, waiting.probe):
            self._continuing = None
        elif self._probe is not None and asked in (None, self._probe):
            self._probe = None
        else:
            return
        self.status = "ready"
        if frame.get("reason") == "idle" and asked is not None:
            self._observed = None

    # Streams

    def _response(self, frame: Frame) -> None:
        request_id = frame["id"]
        if request_id in self._local:
            self._own_response(request_id, frame)
        elif frame.get("error"):
            self._forget_stream(request_id)
        else:
            self._observe(request_id, frame)

    def _own_response(self, request_id: str, frame: Frame) -> None:
        stream = self._local[request_id]
        chunk = chunk_of(frame)
        if chunk is not None and chunk["type"] == "start" and "messageId" in chunk:
            self._own_start(request_id, chunk["messageId"], frame)
        ended = bool(frame["done"] or frame.get("error"))
        if ended:
            self.list.restore(self._starts.pop(request_id, None))
            self._forget_stream(request_id)
            del self._local[request_id]
        if stream is None:
            return
        try:
            self._feed(stream, chunk, frame)
        except StreamError as problem:
            self._fail(stream, str(problem))
        if ended:
            self._end(stream, frame)

    def _own_start(self, request_id: str, message_id: str, frame: Frame) -> None:
        self._starts[request_id] = message_id
        if request_id in self._stopped:
            self.cut.add(message_id)
        if frame.get("continuation"):
            return
        self.list.protect(message_id)
        if frame.get("replay"):
            self._expects_replay.discard(request_id)
            self.list.empty_tail(message_id)

    def _feed(self, stream: LocalStream, chunk: Chunk | None, frame: Frame) -> None:
        if frame.get("error"):
            return
        request_id = stream.request_id or ""
        seq = frame.get("seq", -1)
        known = 0 <= seq <= self._applied.get(request_id, -1)
        if frame.get("replay") and frame.get("continuation") and known:
            stream.skip(chunk)
            return
        if stream.resumed and seq >= 0:
            self._applied[request_id] = max(seq, self._applied.get(request_id, -1))
        chunks = stream.with_open_parts(chunk)
        if frame.get("replay") and not frame["done"] and not frame.get("replayComplete"):
            stream.batch += chunks
            return
        self._flush(stream)
        for one in chunks:
            self._apply(stream, one)

    def _flush(self, stream: LocalStream) -> None:
        batch, stream.batch = stream.batch, []
        for chunk in batch:
            self._apply(stream, chunk)

    def _apply(self, stream: LocalStream, chunk: Chunk) -> None:
        if not stream.fold.apply(chunk, resumed=stream.resumed):
            return
        if chunk["type"] != "start":
            self.status = "streaming"
        self.list.put(copy.deepcopy(stream.fold.message))

    def _end(self, stream: LocalStream, frame: Frame) -> None:
        if frame.get("error"):
            self._fail(stream, frame["body"])
        elif self.status != "error":
            self.status = "ready"
        if stream is self._continuing:
            self._continuing = None

    def _fail(self, stream: LocalStream, text: str) -> None:
        self.status = "error"
        self.error = text
        if stream.request_id in self._local:
            self._local[stream.request_id] = None

    def _observe(self, request_id: str, frame: Frame) -> None:
        observing = self._observed is not None and self._observed.request_id == request_id
        expected = request_id in self._expects_replay
        if frame.get("replay") and self._observed is None and not expected:
            return
        if frame["done"] and not observing and not expected:
            self._forget_stream(request_id)
            return
        chunk = chunk_of(frame)
        starts = chunk is not None and chunk["type"] == "start"
        if frame.get("replay") and starts and not frame.get("continuation"):
            self._expects_replay.discard(request_id)
            self.list.empty_tail((chunk or {}).get("messageId"))
        if frame["done"] or frame.get("replayComplete"):
            self._expects_replay.discard(request_id)
        if not observing or (frame.get("replay") and starts):
            continuation = bool(frame.get("continuation"))
            self._observed = Observed(request_id, self._id("a"), continuation=continuation)
        assert self._observed is not None
        if chunk is not None:
            self._observed.apply(chunk)
        self._show_observed(self._observed, frame)
        if frame["done"]:
            self._forget_stream(request_id)

    def _show_observed(self, observed: Observed, frame: Frame) -> None:
        live = chunk_of(frame) is not None and not frame.get("replay")
        pauses = not (frame["done"] or live) and frame.get("replayComplete")
        goes_on = (frame["done"] or live) and not observed.diverges_from(self.messages)
        if pauses or goes_on:
            self.list.messages = observed.merged(self.messages)

    def _forget_stream(self, request_id: str) -> None:
        self._expects_replay.discard(request_id)
        self._acked.discard(request_id)
        self._applied.pop(request_id, None)
        self._turn = None if self._turn == request_id else self._turn
        if self._observed is not None and self._observed.request_id == request_id:
            self._observed = None

    def _forget_chat(self) -> None:
        self.list.forget()
        self._wants_continuation = False
        self._expects_replay.clear()
        self._acked.clear()
        self._starts.clear()
        self._applied.clear()

    def _id(self, kind: str) -> str:
        self._made += 1
        return f"{self.name}-{kind}{self._made}"
