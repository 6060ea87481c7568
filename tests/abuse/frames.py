"""Frames no honest client sends, from a seed: every frame type, bent in every way (spec/01 §3.3).

A frame is either bytes that are no frame at all (binary, text that is not JSON, JSON that is not an
object) or a real frame of which fields are missing, doubled, of another type, far too long, far too
deep, or full of characters that UTF-8 cannot hold. Ids come from a small pool, so that many of them
hit something that exists.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

Frame = str | bytes

BEGINNING, HUGE_AT_FIRST, HUGE_LATER = 20_000, 100, 1_000
"""Every so many frames one is huge: more often at first, so that every buffer and cache has its
full size early.
"""
STRINGS = (
    *("", " ", "\x00", "\ud83d", "a\udc00b", "💥", "é\u2028\u2029", "null", "true", "0", "[]"),
    *("__proto__", "constructor", "__class__", "__init__", "../../etc/passwd", "' OR 1=1 --"),
    *("%s%n", "${7*7}", "{{7*7}}", "\r\nSet-Cookie: a=b", "x" * 300, "é" * 5_000),
)
SCALARS = (None, True, False, 0, -1, 1.5, 1e308, -0.0, 2**53 + 1, -(2**63), 2**64, 10**400)
DEPTHS = (10, 63, 64, 65, 100, 399, 401, 900, 5_000, 100_000)
NOT_JSON = (
    *(
        "",
        " ",
        "not json",
        "{",
        "[",
        '{"type":',
        "{'type': 'rpc'}",
        "NaN",
        "[1,]",
        '{"a":1}{"b":2}',
    ),
    *("\ufeff{}", "undefined", '"\\ud800"', '{"type":"rpc"', "\x00", "//", '"', "0x10", "1e999"),
)
NOT_OBJECTS = ("null", "true", "0", "-1.5", '"text"', "[]", "[[]]", '[{"type":"rpc"}]', '"rpc"')
ROLES = ("user", "assistant", "system", "tool", "", None, 1)
PART_TYPES = ("text", "reasoning", "file", "step-start", "tool-pay", "dynamic-tool", "data-x", 7)
PART_FIELDS = ("text", "input", "output", "approval", "errorText", "toolName", "rawInput", "data")
PART_FIELDS += ("providerMetadata", "callProviderMetadata", "url", "mediaType", "preliminary", "id")
TOOL_STATES = ("input-streaming", "input-available", "approval-requested", "approval-responded")
TOOL_STATES += ("output-available", "output-error", "output-denied", "bogus")


class FrameMaker:
    """An endless supply of frames; the same seed gives the same frames."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._made = 0
        self._kinds: tuple[tuple[int, Callable[[], Frame]], ...] = (
            (8, self._binary),
            (8, self._not_json),
            (8, lambda: self._random.choice(NOT_OBJECTS)),
            (8, self._unknown_type),
            (14, lambda: self._bent(self._rpc())),
            (10, lambda: self._bent(self._state())),
            (12, lambda: self._bent(self._chat(bend_body=True))),
            (1, lambda: self._text(self._chat(bend_body=False))),
            (
                6,
                lambda: self._bent({"type": "cf_agent_chat_request_cancel", "id": self._request()}),
            ),
            (1, lambda: self._bent({"type": "cf_agent_chat_clear"})),
            (
                5,
                lambda: self._bent(
                    {"type": "cf_agent_chat_messages", "messages": self._messages()}
                ),
            ),
            (5, lambda: self._bent(self._probe())),
            (5, lambda: self._bent({"type": "cf_agent_stream_resume_ack", "id": self._request()})),
            (9, lambda: self._bent(self._tool_result())),
            (9, lambda: self._bent(self._approval())),
        )
        self._weights = [weight for weight, _ in self._kinds]
        self._makers = [maker for _, maker in self._kinds]

    def make(self) -> Frame:
        """The next frame."""
        self._made += 1
        every = HUGE_AT_FIRST if self._made < BEGINNING else HUGE_LATER
        if self._made % every == 0:
            return self._huge()
        return self._random.choices(self._makers, self._weights)[0]()

    # No frame at all

    def _binary(self) -> bytes:
        return self._random.randbytes(self._random.choice((0, 1, 2, 64, 500)))

    def _not_json(self) -> str:
        if self._random.random() < 0.8:
            return self._random.choice(NOT_JSON)
        text = self._text(self._rpc())
        return text[: self._random.randrange(len(text))]

    def _unknown_type(self) -> str:
        return self._text({"type": self._value(), "id": self._value(), "data": self._value()})

    def _huge(self) -> Frame:
        text = self._random.choice(("y", "é", "\ud800", '\\"', "[")) * 300_000
        message = {"id": text[:2_000], "role": "user", "parts": [{"type": "text", "text": text}]}
        chat = self._chat(bend_body=False)
        chat["init"] = {"method": "POST", "body": json.dumps({"messages": [message]})}
        frames = (text, text.encode("utf-8", "surrogatepass"), json.dumps(text), self._text(chat))
        fields = {"id": text, "probeId": text, "method": text, "toolCallId": text, "state": text}
        kinds = (self._rpc(), self._state(), self._probe(), self._tool_result(), self._approval())
        bent = self._random.choice(kinds)
        bent |= {key: value for key, value in fields.items() if key in bent}
        huge = self._random.choice((*frames, self._text(bent)))
        return huge.replace("\ud800", "?") if isinstance(huge, str) else huge

    # Real frames

    def _rpc(self) -> dict[str, Any]:
        names = (
            "echo",
            "count",
            "watchers",
            "get_messages",
            "_turns",
            "on_start",
            "set_state",
            "nope",
        )
        names += ("__init__", "__class__", "getBranches", "setActiveLeaf", "getTurnDetails")
        method = self._random.choice((*names, self._string()))
        args = [self._value() for _ in range(self._random.randrange(4))]
        return {"type": "rpc", "id": self._string(), "method": method, "args": args}

    def _state(self) -> dict[str, Any]:
        return {"type": "cf_agent_state", "state": self._value()}

    def _probe(self) -> dict[str, Any]:
        return {"type": "cf_agent_stream_resume_request", "probeId": self._string()}

    def _tool_result(self) -> dict[str, Any]:
        return {
            "type": "cf_agent_tool_result",
            "toolCallId": self._call(),
            "toolName": self._string(),
            "output": self._value(),
            "state": self._random.choice(("output-available", "output-error", self._string())),
            "errorText": self._string(),
            "autoContinue": self._random.choice((True, False, None, 1)),
            "clientTools": self._tools(),
        }

    def _approval(self) -> dict[str, Any]:
        return {
            "type": "cf_agent_tool_approval",
            "toolCallId": self._call(),
            "approved": self._random.choice((True, False, None, "yes", 1)),
            "autoContinue": self._random.choice((True, False, None, 1)),
            "reason": self._value(),
        }

    def _chat(self, *, bend_body: bool) -> dict[str, Any]:
        body: Any = {
            "messages": self._messages() if bend_body else [self._plain_message()],
            "trigger": self._random.choice(
                ("submit-message", "regenerate-message", self._string())
            ),
        }
        if self._random.random() < 0.3:
            body["clientTools"] = self._tools()
        if bend_body and self._random.random() < 0.3:
            body = self._bend(body)
        text = self._text(body)
        if bend_body and self._random.random() < 0.2:
            text = self._random.choice((*NOT_JSON, *NOT_OBJECTS))
        method = (
            self._random.choice(("POST", "POST", "POST", "GET", "", 1)) if bend_body else "POST"
        )
        init = {"method": method, "body": text}
        return {"type": "cf_agent_use_chat_request", "id": self._request(), "init": init}

    def _plain_message(self) -> dict[str, Any]:
        text = self._random.choice(("hello", "call:look", "call:pay", "call:ask", "call:nope"))
        part = {"type": "text", "text": text}
        return {"id": self._message_id(), "role": "user", "parts": [part]}

    def _messages(self) -> list[Any]:
        return [self._message() for _ in range(self._random.randrange(3))]

    def _message(self) -> Any:
        message: dict[str, Any] = {
            "id": self._message_id(),
            "role": self._random.choice(ROLES),
            "parts": [self._part() for _ in range(self._random.randrange(3))],
        }
        if self._random.random() < 0.3:
            message["metadata"] = self._value()
        if self._random.random() < 0.1:
            del message["parts"]
            message["content"] = self._value()
            message["toolInvocations"] = self._value()
        return self._bend(message) if self._random.random() < 0.2 else message

    def _part(self) -> Any:
        part: dict[str, Any] = {"type": self._random.choice(PART_TYPES), "text": self._string()}
        if self._random.random() < 0.5:
            part["toolCallId"] = self._call()
            part["state"] = self._random.choice((*TOOL_STATES, self._value()))
        for field in self._random.sample(PART_FIELDS, self._random.randrange(4)):
            part[field] = self._value()
        return self._bend(part) if self._random.random() < 0.2 else part

    def _tools(self) -> Any:
        names = ("ask", "look", "", self._string())
        tool = {"name": self._random.choice(names), "parameters": self._value()}
        return self._random.choice(([], [tool], [tool, tool], [self._value()], self._value()))

    # What is bent

    def _bent(self, frame: dict[str, Any]) -> str:
        """The frame, usually with something wrong in it."""
        chance = self._random.random()
        if chance < 0.2:
            return self._text(frame)
        if chance < 0.3:  # every key twice; the last one counts, or the first
            return self._text(self._bend(frame))[:-1] + "," + self._text(frame)[1:]
        return self._text(self._bend(frame))

    def _bend(self, fields: dict[str, Any]) -> dict[str, Any]:
        bent = dict(fields)
        key = self._random.choice([key for key in bent if key != "type"] or ["type"])
        match self._random.randrange(3):
            case 0:
                del bent[key]
            case 1:
                bent[key] = self._value()
            case _:
                bent[self._string()] = self._value()
        return bent

    def _value(self, depth: int = 0) -> Any:
        chance = self._random.random()
        if chance < 0.35 or depth > 3:
            return self._random.choice(SCALARS)
        if chance < 0.7:
            return self._string()
        if chance < 0.72:
            return {"@deep": self._random.choice(DEPTHS)}
        if chance < 0.86:
            return [self._value(depth + 1) for _ in range(self._random.randrange(4))]
        count = self._random.randrange(4)
        return {self._string(): self._value(depth + 1) for _ in range(count)}

    def _string(self) -> str:
        return self._random.choice(STRINGS)

    def _request(self) -> str:
        return f"q{self._random.randrange(10_000)}" if self._mostly() else self._string()

    def _message_id(self) -> Any:
        return f"m{self._random.randrange(10_000)}" if self._mostly() else self._value()

    def _call(self) -> Any:
        return f"call-{self._random.randrange(1, 4)}" if self._mostly() else self._value()

    def _mostly(self) -> bool:
        return self._random.random() < 0.9

    def _text(self, value: Any) -> str:
        text = json.dumps(value)
        if "@deep" in text:
            for depth in DEPTHS:
                text = text.replace(f'{{"@deep": {depth}}}', "[" * depth + "]" * depth)
                inner = f'{{\\"@deep\\": {depth}}}'
                text = text.replace(inner, "[" * depth + "]" * depth)
        return text
