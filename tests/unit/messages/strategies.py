"""Legal UI message streams made up at random: every chunk kind of spec/01 §9.1 in legal order.

`make_stream` takes its choices from a `Random`, so that a seed gives the same stream on every
machine (the comparison with the AI SDK) and Hypothesis can steer and shrink it (`legal_streams`).
"""

import json
from random import Random
from typing import Any

from hypothesis import strategies as st

from thinkwell.messages.chunks import Chunk

WORDS = ("Hello", " ", "wörld", "\n", "🙂", '"quoted"', "{", "日本", "a" * 40, "")
NAMES = ("getWeather", "search", "delete_file")
PM = {"mock": {"signature": "sig", "depth": {"n": 1}}}

Strand = list[Chunk]


class StreamMaker:
    """Puts one stream together. A strand is what belongs together in order; strands interleave."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.calls = 0
        self.asked_early: set[str] = set()

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def text(self, pieces: int = 3) -> str:
        return "".join(self.random.choice(WORDS) for _ in range(self.random.randint(0, pieces)))

    def value(self, depth: int = 0) -> Any:
        plain = [None, True, 0, -3, 0.5, self.text(), "x"]
        kinds = [*plain, [], {}] if depth > 1 else [*plain, "list", "object"]
        match self.random.choice(kinds):
            case "list":
                return [self.value(depth + 1) for _ in range(self.random.randint(0, 2))]
            case "object":
                return self.object(depth + 1)
            case other:
                return other

    def object(self, depth: int = 0) -> dict[str, Any]:
        keys = self.random.sample(["city", "n", "nested", "ключ"], self.random.randint(0, 3))
        return {key: self.value(depth) for key in keys}

    def some(self, **fields: Any) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if self.chance(25)}

    def stream(self) -> list[Chunk]:
        chunks: list[Chunk] = [
            {"type": "start"} | self.some(messageId="answer-1", messageMetadata=self.object())
        ]
        for _ in range(self.random.randint(0, 3)):
            chunks += self.step()
        chunks += self.ending()
        if self.chance(20):  # the process died, or somebody pressed stop
            chunks = self.cut(chunks, self.random.randint(1, len(chunks)))
        return chunks

    def cut(self, chunks: list[Chunk], end: int) -> list[Chunk]:
        """The first chunks, but never an input without the approval request told with it (F9)."""
        last = {chunk.get("toolCallId"): chunk["type"] for chunk in chunks[:end]}
        if any(last.get(call_id) == "tool-input-available" for call_id in self.asked_early):
            return self.cut(chunks, end + 1)
        return chunks[:end]

    def ending(self) -> list[Chunk]:
        return self.random.choice(
            (
                [
                    {"type": "finish"}
                    | self.some(finishReason="stop", messageMetadata=self.object())
                ],
                [{"type": "abort"} | self.some(reason="user")],
                [{"type": "error", "errorText": "the model failed"}],
            )
        )

    def step(self) -> list[Chunk]:
        content = self.interleave([self.strand(i) for i in range(self.random.randint(0, 5))])
        chunks: list[Chunk] = [{"type": "start-step"}]
        if content and self.chance(15):
            chunks += content[: self.random.randint(0, len(content))]
            chunks.append({"type": "reset-step"})
        return [*chunks, *content, {"type": "finish-step"}]

    def interleave(self, strands: list[Strand]) -> list[Chunk]:
        waiting = [list(reversed(strand)) for strand in strands]
        woven: list[Chunk] = []
        while waiting := [strand for strand in waiting if strand]:
            woven.append(self.random.choice(waiting).pop())
        return woven

    def strand(self, index: int) -> Strand:
        kinds = (
            self.writing,
            self.writing,
            self.tool,
            self.tool,
            self.tool,
            self.single,
            self.data,
        )
        return self.random.choice(kinds)(index)

    def writing(self, index: int) -> Strand:
        kind, part_id = self.random.choice(("text", "reasoning")), f"part-{index}"
        deltas = [
            {"type": f"{kind}-delta", "id": part_id, "delta": self.text()}
            | self.some(providerMetadata=PM)
            for _ in range(self.random.randint(0, 4))
        ]
        start = {"type": f"{kind}-start", "id": part_id} | self.some(providerMetadata=PM)
        end = {"type": f"{kind}-end", "id": part_id} | self.some(providerMetadata={"mock": {}})
        return [start, *deltas, end]

    def single(self, index: int) -> Strand:
        media = {"url": "data:image/png;base64,AAAA", "mediaType": "image/png"}
        document = {"sourceId": "d", "mediaType": "text/plain", "title": "Doc"}
        chunk = self.random.choice(
            (
                {"type": "file", **media},
                {"type": "reasoning-file", **media},
                {"type": "custom", "kind": "mock.thing"},
                {"type": "source-url", "sourceId": "s", "url": "https://example.org"}
                | self.some(title="Example"),
                {"type": "source-document", **document} | self.some(filename="doc.txt"),
                {"type": "message-metadata", "messageMetadata": self.object()},
            )
        )
        if chunk["type"] == "message-metadata":
            return [chunk]
        return [chunk | self.some(providerMetadata=PM)]

    def data(self, index: int) -> Strand:
        return [
            {"type": self.random.choice(("data-status", "data-note")), "data": self.value()}
            | self.some(id=self.random.choice("ab"), transient=True)
            for _ in range(self.random.randint(1, 3))
        ]

    def tool(self, index: int) -> Strand:
        self.calls += 1
        call = {"toolCallId": f"call-{self.calls}"}
        opened = call | {"toolName": self.random.choice(NAMES)} | self.some(dynamic=True)
        value = self.object()
        begin = self.input_stream(opened, json.dumps(value)) if self.chance(60) else []
        if begin and self.chance(10):
            return begin[: self.random.randint(1, len(begin))]
        if begin and self.chance(10):  # a repaired call may get another name
            opened["toolName"] = "search"
        if self.chance(15):
            return [*begin, *self.bad_input(opened, call)]
        told = {"type": "tool-input-available", **opened, "input": value} | self.description()
        if self.chance(35):
            return [*begin, *self.approved(call, told, early=bool(begin))]
        return [*begin, told, *self.outcome(call)]

    def description(self) -> dict[str, Any]:
        return self.some(
            providerExecuted=True, providerMetadata=PM, toolMetadata={"k": 1}, title="Tool"
        )

    def input_stream(self, opened: dict[str, Any], text: str) -> Strand:
        cuts = sorted(self.random.randint(0, len(text)) for _ in range(2))
        pieces = (text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :])
        call_id = opened["toolCallId"]
        deltas = [
            {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": piece}
            for piece in pieces
        ]
        return [{"type": "tool-input-start", **opened} | self.description(), *deltas]

    def bad_input(self, opened: dict[str, Any], call: dict[str, Any]) -> Strand:
        written = self.random.choice((self.object(), {}, "{oops"))  # old servers told the text
        bad = {"type": "tool-input-error", **opened, "input": written, "errorText": "no JSON"}
        chunks = [bad | self.description()]
        if self.chance(50):
            chunks.append({"type": "tool-output-error", **call, "errorText": "no JSON"})
        return chunks

    def approved(self, call: dict[str, Any], told: Chunk, *, early: bool) -> Strand:
        approval_id = f"approval-{self.calls}"
        asked = {"type": "tool-approval-request", "approvalId": approval_id, **call} | self.some(
            isAutomatic=True, signature="signed", approvalDescriptor={"title": "Really?"}
        )
        chunks = [told, asked]
        if early and self.chance(30):
            self.asked_early.add(call["toolCallId"])
            chunks = [asked, told, asked]
        answer = {"type": "tool-approval-response", "approvalId": approval_id}
        answer |= self.some(reason="because", providerExecuted=True, providerMetadata=PM)
        denied = {"type": "tool-output-denied", **call}
        match self.random.randrange(4):
            case 0:
                return chunks
            case 1:
                return [*chunks, answer | {"approved": True}, *self.outcome(call)]
            case 2:
                return [*chunks, answer | {"approved": False}, denied]
            case _:
                return [*chunks, denied]

    def outcome(self, call: dict[str, Any]) -> Strand:
        more = self.some(providerExecuted=True, providerMetadata={"mock": {"out": True}})
        output = {"type": "tool-output-available", **call}
        early = [
            output | {"output": self.value(), "preliminary": True} | more
            for _ in range(self.random.randint(0, 2))
        ]
        match self.random.randrange(4):
            case 0:
                return []
            case 1:
                return [*early, {"type": "tool-output-error", **call, "errorText": "broke"} | more]
            case _:
                return [*early, output | {"output": self.value()} | more]


def make_stream(random: Random) -> list[Chunk]:
    """One legal stream."""
    return StreamMaker(random).stream()


legal_streams = st.one_of(
    st.integers(0, 2**32).map(Random).map(make_stream),  # far apart from each other
    st.randoms(use_true_random=False).map(make_stream),  # small, and shrinking well
)
