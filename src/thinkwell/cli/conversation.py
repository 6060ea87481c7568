"""A chat over a link: ask, follow the answer, stop it, answer its questions, join a running one.

Owned here: which frames belong to the answer being shown, when it is over, and what is done when
the connection breaks: dial again, take up the same stream and leave out what was shown already
(chunks are numbered, spec/01 §3.4.3). Showing is the `Screen`'s work. The transcript is the
server's; the last one seen is sent along, as browsers do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import msgspec

from thinkwell.cli.answers import AnswerToCall
from thinkwell.cli.links import Link, LinkError
from thinkwell.cli.screen import Screen
from thinkwell.core.errors import ThinkwellError
from thinkwell.core.ids import new_id
from thinkwell.core.json import dumps, loads
from thinkwell.messages.message import Part, UIMessage, text_of, tool_parts, user_message

Dial = Callable[[str], AbstractAsyncContextManager[Link]]
"""Connects to the conversation with a name. May raise `LinkError`."""
Frame = dict[str, Any]

TICK = 0.1
"""Seconds between two moments in which the screen may show that time passes."""
RECOVERING = "The server takes the answer up again"
FIRST_DELAY, LAST_DELAY = 0.25, 3.0
"""Seconds between tries to connect again."""


_CHAT_GREETINGS = {
    "cf_agent_chat_messages",
    "cf_agent_stream_resuming",
    "cf_agent_stream_pending",
}
"""A chat agent begins with one of these (spec/01 §2.4)."""


class CallError(ThinkwellError):
    """A method of the agent could not be called, or raised."""


class Stream(msgspec.Struct, kw_only=True):
    """The answer that is being followed."""

    id: str | None = None
    """Its request id; None until the server has told it."""
    request: Frame | None = None
    """What we sent to get it, if it was a question."""
    ours: bool = False
    """Whether we asked for it."""
    shown: int = 0
    """How many of its chunks the screen has seen."""
    counted: int = 0
    """How many came over this connection, for servers that do not number them."""
    continues: str | None = None
    """The message that its words go into, if that was there before."""
    text: str = ""
    """What the screen has seen of that message's text."""
    over: bool = False
    outcome: str = ""


class TerminalChat:
    """One terminal's view of one agent."""

    def __init__(
        self,
        dial: Dial,
        screen: Screen,
        *,
        name: str = "default",
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._dial = dial
        self._screen = screen
        self._sleep = sleep
        self._stack = AsyncExitStack()
        self._link: Link | None = None
        self._stream: Stream | None = None
        self._replies: dict[str, Frame] = {}
        self._calls: set[str] = set()
        self._connecting = False
        self._waits = False
        self._offer: str | None = None
        self.name = name
        self.messages: list[UIMessage] = []

    # The connection

    async def open(self, name: str | None = None) -> None:
        """Connect, to another conversation if a name is given; then `messages` is its transcript.

        An answer that runs already is followed by `resume`.
        """
        await self.close()
        self.name = name or self.name
        self.messages, self._offer, self._waits = [], None, False
        self._link = await self._stack.enter_async_context(self._dial(self.name))
        try:
            await self._greeted()
        except BaseException:
            await self.close()  # whoever is refused leaves nothing open
            raise

    async def _greeted(self) -> None:
        self._connecting = True
        seen: set[str] = set()
        while "cf_agent_mcp_servers" not in seen:
            frame = await self._receive()
            seen.add(frame["type"])
            await self._take(frame)
        self._connecting = False
        if not seen & _CHAT_GREETINGS:
            raise LinkError("This agent does not chat: its class is no Think.", final=True)

    async def close(self) -> None:
        """Disconnect. A running answer goes on without us."""
        self._link = None
        await self._stack.aclose()

    async def catch_up(self) -> None:
        """Take what has come while nobody looked; a lost connection is made again."""
        try:
            while self._link is not None and self._link.has_frames():
                await self._take(await self._receive())
        except LinkError as error:
            await self._reconnect(error)

    # Answers

    async def resume(self) -> str:
        """Follow the answer that was running when we came, if there was one."""
        if self._offer is None and not self._waits:
            return ""
        return await self._follow(self._continuation(id=self._offer), self._accept_offer)

    async def ask(self, text: str) -> str:
        """Send a message and show the answer until it is over; gives its outcome."""
        return await self._request([*self.messages, user_message(new_id(), text)])

    async def retry(self) -> str:
        """Another answer to the last question, as a new branch; gives its outcome."""
        asked = [n for n, message in enumerate(self.messages) if message["role"] == "user"]
        if not asked:
            return ""
        return await self._request(self.messages[: asked[-1] + 1], trigger="regenerate-message")

    async def stop(self) -> bool:
        """Stop the running answer; False if there is none, or no way to say so."""
        if self._stream is None or self._stream.id is None or self._link is None:
            return False
        try:
            await self._send({"type": "cf_agent_chat_request_cancel", "id": self._stream.id})
        except LinkError:
            return False
        return True

    async def clear(self) -> bool:
        """Delete the conversation; False if the server did not.

        Its sender hears nothing of a clear, and of a refused one the transcript comes back. So a
        question that is always answered goes behind it.
        """
        before = {message["id"] for message in self.messages}
        await self._send({"type": "cf_agent_chat_clear"})
        self.messages = []
        await self._heard_everything()
        return not any(message["id"] in before for message in self.messages)

    # Questions the answer leaves

    def questions(self) -> list[Part]:
        """The tool calls that wait for somebody's permission."""
        return [part for part in self._last_parts() if part.get("state") == "approval-requested"]

    def open_calls(self) -> set[str]:
        """The ids of all calls that nobody has answered."""
        waits = ("approval-requested", "input-available")
        return {p["toolCallId"] for p in self._last_parts() if p.get("state") in waits}

    def foreign_calls(self) -> list[Part]:
        """The calls of our own turns that want a client to run them; a terminal cannot."""
        parts = (part for part in self._last_parts() if part.get("state") == "input-available")
        return [part for part in parts if part.get("toolCallId") in self._calls]

    async def answer(self, answers: Sequence[AnswerToCall]) -> str:
        """Answer calls, and follow what the model makes of it; gives the outcome."""

        async def say() -> None:
            for answer in answers:
                await self._send(answer.frame())
            await self._send({"type": "cf_agent_stream_resume_request", "probeId": new_id()})

        return await self._follow(self._continuation(ours=True), say)

    # Calls

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the agent. Raises `CallError`."""
        call_id = new_id()
        frame = {"type": "rpc", "id": call_id, "method": method, "args": list(arguments)}
        await self._send(frame)
        while call_id not in self._replies:
            await self._take(await self._receive())
        reply = self._replies.pop(call_id)
        if not reply.get("success"):
            raise CallError(str(reply.get("error", "")))
        return reply.get("result")

    # Inside

    def _last_parts(self) -> list[Part]:
        last = self.messages[-1] if self.messages else None
        return list(tool_parts(last)) if last is not None and last["role"] == "assistant" else []

    async def _request(
        self, messages: Sequence[UIMessage], *, trigger: str = "submit-message"
    ) -> str:
        # An empty list: this client has no tools of its own (§6.2).
        body: Frame = {"messages": messages, "trigger": trigger, "clientTools": []}
        request: Frame = {
            "type": "cf_agent_use_chat_request",
            "id": new_id(),
            "init": {"method": "POST", "body": dumps(body)},
        }
        self.messages = list(messages)
        stream = Stream(id=request["id"], request=request, ours=True)
        return await self._follow(stream, lambda: self._send(request))

    def _continuation(self, **about: Any) -> Stream:
        """A stream that may go on with the last answer."""
        last = self.messages[-1] if self.messages else None
        if last is None or last["role"] != "assistant":
            return Stream(**about)
        return Stream(continues=last["id"], text=text_of(last), **about)

    async def _follow(self, stream: Stream, begin: Callable[[], Awaitable[None]]) -> str:
        """Show a stream until it is over, over as many connections as it takes."""
        self._stream = stream
        self._screen.begin()
        try:
            while not stream.over:
                try:
                    await begin()
                    while not stream.over:
                        await self._take(await self._receive())
                except LinkError as error:
                    await self._reconnect(error)
                    begin = self._rejoin
            return stream.outcome
        finally:
            self._stream = None

    async def _reconnect(self, error: LinkError) -> None:
        """Dial until somebody answers."""
        delay = FIRST_DELAY
        while not error.final:
            self._screen.status("Connection lost, trying again")
            await self._sleep(delay)
            delay = min(delay * 2, LAST_DELAY)
            try:
                await self.open()
                self._screen.status("")
                return
            except LinkError as next_error:
                error = next_error
        raise error

    async def _rejoin(self) -> None:
        """Go on with the stream after a new connection."""
        stream = self._stream
        if stream is None:
            return
        stream.counted = 0
        if self._offer is not None and stream.id in {None, self._offer}:
            await self._accept_offer()
        elif self._offer is None and self._waits:
            return  # accepted and not begun: the offer comes
        elif stream.id is not None and self._offer is None:
            await self._acknowledge(stream.id)  # over meanwhile, or never arrived: we shall hear
        else:
            self._end(stream, "", None)

    async def _accept_offer(self) -> None:
        if self._offer is not None and self._stream is not None:
            self._stream.id = self._offer
            await self._acknowledge(self._offer)

    async def _acknowledge(self, request_id: str) -> None:
        self._offer, self._waits = None, False
        await self._send({"type": "cf_agent_stream_resume_ack", "id": request_id})

    async def _take(self, frame: Frame) -> None:
        """Act on one frame."""
        match frame["type"]:
            case "cf_agent_chat_messages":
                self.messages = frame["messages"]
            case "cf_agent_message_updated":
                self._update(frame["message"])
            case "cf_agent_chat_clear":
                self.messages = []
                self._screen.note("The conversation was cleared elsewhere.")
            case "cf_agent_chat_recovering":
                self._screen.status(RECOVERING if frame["recovering"] else "")
            case "cf_agent_stream_resuming":
                await self._offered(frame["id"])
            case "cf_agent_stream_pending":
                self._waits = True
            case "cf_agent_stream_resume_none":
                self._nothing_to_follow()
            case "cf_agent_use_chat_response":
                await self._response(frame)
            case "rpc":
                self._replies[frame["id"]] = frame
            case _:
                pass

    async def _offered(self, request_id: str) -> None:
        self._offer = request_id
        stream = self._stream
        if self._connecting or stream is None or stream.over:
            return
        if stream.id in {None, request_id}:
            await self._accept_offer()

    def _nothing_to_follow(self) -> None:
        self._waits = False
        stream = self._stream
        if stream is not None and stream.id is None:  # no continuation after all
            self._end(stream, "", None)

    async def _response(self, frame: Frame) -> None:
        stream = self._stream
        if stream is None or frame["id"] != stream.id or stream.over:
            return
        if frame["done"]:
            await self._done(stream, frame)
        elif frame["body"]:
            number = frame.get("seq", stream.counted)
            stream.counted = number + 1
            if number >= stream.shown:
                stream.shown = number + 1
                chunk: Mapping[str, Any] = loads(frame["body"])
                if stream.ours and "toolCallId" in chunk:
                    self._calls.add(chunk["toolCallId"])
                if chunk["type"] == "text-delta":
                    stream.text += chunk["delta"]
                self._screen.chunk(chunk, live=not frame.get("replay"))

    async def _done(self, stream: Stream, frame: Frame) -> None:
        unknown = frame.get("replay") and "outcome" not in frame and not stream.counted
        if unknown and stream.request is not None and not stream.shown:
            await self._send(stream.request)  # it was lost with the connection: ask again
            return
        error = str(frame["body"]) if frame.get("error") else None
        outcome = frame.get("outcome", "completed" if error is None else "error")
        if frame.get("replay") and error is None:
            await self._show_rest(stream)
        if not stream.over:
            self._end(stream, outcome, error)

    async def _show_rest(self, stream: Stream) -> None:
        """Show what of a continuation came as no chunk.

        If it is over before we join it, the server sends a bare end: its words are in the
        transcript, which may come before that end or behind it.
        """
        if stream.continues is None:
            return
        await self._heard_everything()
        for message in self.messages:
            if message["id"] == stream.continues:
                self._screen.update(message)
                for text in _texts_behind(stream.text, message):
                    stream.text += text
                    for chunk in _chunks_of(text):
                        self._screen.chunk(chunk, live=False)

    async def _heard_everything(self) -> None:
        """Take all that the server has sent so far: a probe is always answered (spec/01 §10.2)."""
        probe = new_id()
        await self._send({"type": "cf_agent_stream_resume_request", "probeId": probe})
        frame: Frame = {}
        while frame.get("probeId") != probe:
            frame = await self._receive()
            await self._take(frame)

    def _end(self, stream: Stream, outcome: str, error: str | None) -> None:
        stream.over, stream.outcome = True, outcome
        self._screen.end(outcome, error)

    def _update(self, message: UIMessage) -> None:
        """A message as it is stored now. An answer we followed comes only in this way: it is the
        last one.
        """
        known = [m["id"] for m in self.messages]
        if message["id"] in known:
            self.messages[known.index(message["id"])] = message
        else:
            self.messages.append(message)
        self._screen.update(message)

    async def _receive(self) -> Frame:
        link = self._link
        if link is None:
            raise LinkError("There is no connection.")
        if not link.has_frames():
            self._screen.refresh()
        while True:
            try:
                async with asyncio.timeout(TICK):
                    text = await link.next_frame()
                break
            except TimeoutError:
                self._screen.tick()
        frame: Frame = {"type": "", **loads(text)}
        if not frame["type"] and "error" in frame:
            raise LinkError(str(frame["error"]), final=True)
        return frame

    async def _send(self, frame: Frame) -> None:
        if self._link is None:
            raise LinkError("There is no connection.")
        await self._link.send(dumps(frame))


def _texts_behind(shown: str, message: UIMessage) -> list[str]:
    """The texts of a message that follow what was shown of it; none if that was another text."""
    if not text_of(message).startswith(shown):
        return []
    texts: list[str] = []
    seen = len(shown)
    for part in message["parts"]:
        if part.get("type") == "text":
            texts.append(part["text"][seen:])
            seen = max(0, seen - len(part["text"]))
    return [text for text in texts if text]


def _chunks_of(text: str) -> list[Mapping[str, Any]]:
    return [{"type": "text-start"}, {"type": "text-delta", "delta": text}, {"type": "text-end"}]
