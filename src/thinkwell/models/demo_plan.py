"""What the demo model does about a request: think, say a text, call tools, or fail. Pure.

`plan` looks at the last thing a person said and at what tools have answered since. Which tool fits
is found by its name or its description, so the model works with any agent's tools; without a
fitting one it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    TextContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import ModelRequest, ToolSpec
from thinkwell.models.demo_files import describe_file
from thinkwell.models.demo_report import report
from thinkwell.models.demo_texts import FAREWELL, FORMATS, GREETING, STORY, TRIES, Try

MAX_COUNT = 1000
"""How far it counts."""
MAX_PLACES = 4
"""How many places it looks up at once."""


class PlannedCall(msgspec.Struct, frozen=True):
    """One tool call."""

    tool_name: str
    arguments: dict[str, Any]


class DemoPlan(msgspec.Struct, frozen=True):
    """What the model will do in one call, in this order."""

    thought: str
    text: str = ""
    calls: tuple[PlannedCall, ...] = ()
    failure: str = ""
    """Why the call fails after its text; empty if it ends well."""


class Topic(msgspec.Struct, frozen=True):
    """Something tools can be about."""

    name: str
    """What the thought calls it."""
    pattern: re.Pattern[str]
    """How people ask for it."""
    words: tuple[str, ...]
    """What the name or the description of a fitting tool contains, the best first."""
    in_browser: bool = False
    """Whether the client brings the tool."""
    given: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Values for parameters, by their names, that do not follow from what people say."""


def _asks(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


QUESTION = {"question": "Which season do you like best?", "options": ["spring", "autumn"]}
TOPICS = (
    Topic("weather", _asks(r"\b(?:weather|rain|sunny|temperature|forecast)"), ("weather",)),
    Topic("deletion", _asks(r"\b(?:delete|remove|throw away)\b"), ("delete", "remove")),
    Topic("report", _asks(r"\breport\b"), ("build_report", "report")),
    Topic("dice", _asks(r"\b(?:dice|die)\b"), ("dice",)),
    Topic("notes", _asks(r"\b(?:note|remember)\b"), ("note",)),
    Topic("counter", _asks(r"\b(?:counter|count up)\b"), ("count",)),
    Topic("theme", _asks(r"\b(?:theme|dark|light) ?(?:mode|theme)?\b"), ("theme",), True),
    Topic("browser", _asks(r"\bbrowser\b"), ("browser",), True),
    Topic("question", _asks(r"\bask me\b"), ("ask_user",), True, QUESTION),
    Topic("time", _asks(r"\b(?:time|clock|date|day is it)\b"), ("time",)),
)

_HELP = _asks(r"what can (?:you|i) do|\bhelp\b|\bwho are you\b|what can i try")
_FAIL = _asks(r"^\W*(?:please )?(?:fail|crash)\b")
_MARKDOWN = _asks(r"\bmarkdown\b|\bformatting\b")
_STORY = _asks(r"\bstory\b|\blong (?:answer|text)\b")
_COUNT = _asks(r"\bcount (?:up )?to (\d+)")
_PRODUCT = _asks(r"\b(\d{1,6}) ?(?:times|x|\*|×) ?(\d{1,6})\b")
_NAME = r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*"
_PLACES = re.compile(rf"\b(?:in|for|at|of|between) ({_NAME}(?:(?:,? and|,? or|,) {_NAME})*)")
_BETWEEN = re.compile(r",? and |,? or |, ")
_WHAT = _asks(r"\b(?:note|remember):? (?:that |down )?(.+)")


def plan(request: ModelRequest) -> DemoPlan:
    """What to do about this request."""
    text, files, results = _question(request.messages)
    if results:
        return DemoPlan("The tools have answered. I put it into words.", report(results))
    if files:
        seen = "\n".join(describe_file(file) for file in files)
        return DemoPlan("There is a file. I look at its first bytes.", f"{seen}\n\n{FAREWELL}")
    return (
        _plain_reply(text, request.tools)
        or _tool_use(text, request.tools)
        or DemoPlan(
            "None of my tools fits this, so I answer at once.",
            f'You said: "{text}". That is all I know about it. Ask me "What can you do?"',
        )
    )


def abilities(tools: Sequence[ToolSpec]) -> str:
    """The things to try with these tools, as a list."""
    lines = [line for item in TRIES if (line := _ability(item, tools))]
    return "\n".join((GREETING, "", *lines))


def find_tool(topic: Topic, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """The tool that fits a topic best: by its name, else by its description."""
    for word in topic.words:
        named = (spec for spec in tools if word in spec.name.lower())
        described = (spec for spec in tools if word in spec.description.lower())
        if (spec := next(named, None) or next(described, None)) is not None:
            return spec
    return None


def texts_of(messages: Iterable[ModelMessage]) -> Iterable[str]:
    """What people and the model have said."""
    for message in messages:
        if isinstance(message, UserMessage | AssistantMessage):
            yield from (part.text for part in message.content if isinstance(part, TextContent))


def _ability(item: Try, tools: Sequence[ToolSpec]) -> str | None:
    topic = next((topic for topic in TOPICS if topic.name == item.topic), None)
    if topic is None or find_tool(topic, tools) is not None:
        return item.line
    return f"{item.line} (Open the page for this one.)" if topic.in_browser else None


def _plain_reply(text: str, tools: Sequence[ToolSpec]) -> DemoPlan | None:
    """The answers that need no tool."""
    if _HELP.search(text):
        thought = "I am asked what I can do, so I list what can be tried here."
        return DemoPlan(thought, abilities(tools))
    if _FAIL.search(text):
        thought = "I am asked to fail, so I begin an answer and break off."
        return DemoPlan(thought, "Here is half an", failure="The demo model failed, as asked.")
    if _MARKDOWN.search(text):
        return DemoPlan("I show what an answer can be made of.", FORMATS)
    if match := _PRODUCT.search(text):
        return _multiply(int(match[1]), int(match[2]))
    if match := _COUNT.search(text):
        last = min(int(match[1]), MAX_COUNT)
        numbers = ", ".join(str(number) for number in range(1, last + 1))
        return DemoPlan(f"I am asked to count, so I count up to {last}.", f"{numbers}. Done.")
    if _STORY.search(text):
        return DemoPlan("A long answer is wanted. I know one story.", STORY)
    return None


def _multiply(a: int, b: int) -> DemoPlan:
    """Multiplication as it is taught at school, so that there is something to think about."""
    digits = str(b)
    shares = [int(d) * 10 ** (len(digits) - i) for i, d in enumerate(digits, 1) if d != "0"]
    steps = [f"{a} × {share} = {a * share}." for share in shares]
    split = " + ".join(map(str, shares)) or "0"
    total = " + ".join(str(a * share) for share in shares) or "0"
    thought = (
        f"I have to multiply {a} by {b}. I take {b} apart: {split}.\n\n"
        + "\n".join(steps)
        + f"\n\nTogether: {total} = {a * b}. "
        + f"I check the last digits: {a % 10} × {b % 10} ends in {a * b % 10}, it fits."
    )
    return DemoPlan(thought, f"{a} × {b} = **{a * b}**")


def _tool_use(text: str, tools: Sequence[ToolSpec]) -> DemoPlan | None:
    """A call of the tool the text is about, or a word that there is none."""
    for topic in TOPICS:
        if not topic.pattern.search(text):
            continue
        spec = find_tool(topic, tools)
        if spec is not None:
            calls = _calls(spec, topic, text)
            thought = f"This is about the {topic.name}, and the tool {spec.name} can help."
            if len(calls) > 1:
                thought += f" I ask it about {len(calls)} places at once."
            return DemoPlan(thought, calls=calls)
        if topic.in_browser:
            return DemoPlan(
                "Only a tool of the browser could do this, and no client offers one.",
                f"I would need a tool for the {topic.name} that your browser runs, and this client "
                "offers none. Open the page of this server and ask me there.",
            )
    return None


def _calls(spec: ToolSpec, topic: Topic, text: str) -> tuple[PlannedCall, ...]:
    """One call, or one for each place if the tool takes a place."""
    properties = cast("Mapping[str, Mapping[str, Any]]", spec.input_schema.get("properties", {}))
    found = _PLACES.search(text)
    places = list(dict.fromkeys(_BETWEEN.split(found[1])))[:MAX_PLACES] if found else []
    if not any(_is_place(name) for name in properties):
        places = []
    given = {name: value for name, value in topic.given.items() if name in properties}
    return tuple(
        PlannedCall(spec.name, {**_arguments(spec, text, place), **given})
        for place in places or [""]
    )


def _arguments(spec: ToolSpec, text: str, place: str) -> dict[str, Any]:
    """Values for what the tool requires, and the place if it takes one."""
    properties = cast("Mapping[str, Mapping[str, Any]]", spec.input_schema.get("properties", {}))
    required = cast("list[str]", spec.input_schema.get("required", []))
    values: dict[str, Any] = {}
    for name, schema in properties.items():
        if _is_place(name):
            wanted = place or ("Berlin" if name in required else "")
            values.update({name: _value(schema, wanted)} if wanted else {})
        elif name in required or _mentioned(schema, text) is not None:
            values[name] = _value(schema, text)
    return values


def _is_place(name: str) -> bool:
    return any(word in name.lower() for word in ("city", "place", "location"))


def _value(schema: Mapping[str, Any], text: str) -> Any:
    if (choice := _mentioned(schema, text)) is not None:
        return choice
    if "default" in schema:
        return schema["default"]
    if choices := schema.get("enum"):
        return choices[0]
    samples: dict[Any, Any] = {
        "integer": 1,
        "number": 1,
        "boolean": True,
        "array": [],
        "object": {},
    }
    said = match[1] if (match := _WHAT.search(text)) else text
    return samples.get(schema.get("type"), said.rstrip("."))


def _mentioned(schema: Mapping[str, Any], text: str) -> str | None:
    """The choice of an enumeration that the text names."""
    words = set(re.findall(r"\w+", text.lower()))
    choices = (c for c in schema.get("enum", ()) if isinstance(c, str))
    return next((choice for choice in choices if choice.lower() in words), None)


def _question(
    messages: tuple[ModelMessage, ...],
) -> tuple[str, list[FileContent], list[ToolResultContent]]:
    """The last thing a person said, the files in it, and what tools have answered since."""
    results: list[ToolResultContent] = []
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results = [*message.content, *results]
        elif isinstance(message, UserMessage):
            files = [part for part in message.content if isinstance(part, FileContent)]
            return " ".join(texts_of([message])).strip(), files, results
    return "", [], results
