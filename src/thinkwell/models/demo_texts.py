"""The long texts of the demo model, and the list of things to try with it."""

from __future__ import annotations

import msgspec


class Try(msgspec.Struct, frozen=True):
    """One thing to try."""

    line: str
    topic: str = ""
    """The tools it needs, as a name in `demo_plan.TOPICS`; empty if it needs none."""


GREETING = (
    "I am a small model built into Thinkwell. I need no key and no network, and I always give the "
    "same answer. Say one of these:"
)

TRIES = (
    Try("- **Markdown**: `Show me markdown`. A list, a table and code, word by word."),
    Try("- **Thinking aloud**: `What is 17 times 23?` The thought comes before the answer."),
    Try("- **A tool**: `What is the weather in Paris?` Its card has input and output.", "weather"),
    Try("- **Two tools at once**: `Compare the weather in Paris and Tokyo`.", "weather"),
    Try("- **Progress**: `Build the report`. A slow tool says how far it is.", "report"),
    Try(
        "- **Approval**: `Delete the report`. It waits for your yes or no, over reload and "
        "restart.",
        "deletion",
    ),
    Try(
        "- **Tools of your browser**: `Which browser is this?` or `Switch to the dark theme`.",
        "browser",
    ),
    Try("- **A question to you**: `Ask me something`. The answer waits for yours.", "question"),
    Try("- **State**: `Note that the milk is out`. Every open tab sees it.", "notes"),
    Try(
        "- **Versions**: `Roll the dice`, then regenerate the answer and switch between the two. "
        "Editing your message makes versions, too.",
        "dice",
    ),
    Try("- **Pictures**: add an image and ask `What is in this picture?`"),
    Try(
        "- **Stop, reload, second tab**: `Tell me a long story`. Press stop, and what I said is "
        "kept; reload or open a second tab, and the story goes on there."
    ),
    Try(
        "- **Recovery**: `Count to 300`, and in the middle `kill -9` the server (it printed its "
        "process number at its start). Start it again: the answer goes on, no number is missing "
        "and none comes twice."
    ),
    Try("- **An error**: `Fail`. I break off in the middle of an answer."),
)

FAREWELL = "What it shows I cannot tell: I am a demo and have no eyes. A real model has."

FORMATS = """\
## What an answer can hold

Plain words, **strong** ones, *soft* ones, `code`, and [links](https://example.com).

1. Lists with numbers,
2. which may hold
   - other lists.

> A quotation: a turn is a durable record.

| word | means |
|---|---|
| turn | one admitted execution |
| step | one model call and its tools |
| chunk | one piece of a stream |

```python
from thinkwell import App, Think, tool


class Assistant(Think):
    model = "demo"

    @tool
    async def get_weather(self, city: str) -> str:
        \"\"\"Current weather in a city.\"\"\"
        return f"Sunny in {city}"


app = App(agents=[Assistant])
```

That is all of it.
"""

_KEEPERS = ("Ada", "Bo", "Cleo", "Dag", "Elin", "Finn", "Gerda", "Hugo", "Iris", "Jon")
_WEATHERS = ("fog", "hail", "a still night", "a storm from the west", "the first snow")
_OBJECTS = ("a rope", "a kettle", "three candles", "a torn sail", "an empty bottle")


def _chapter(number: int, keeper: str) -> str:
    weather = _WEATHERS[number % len(_WEATHERS)]
    thing = _OBJECTS[number * 2 % len(_OBJECTS)]
    heir = _KEEPERS[(number + 1) % len(_KEEPERS)]
    return (
        f"### {number + 1}. {keeper}\n\n"
        f"{keeper} kept the light in a year of {weather}. Every hour something was written into "
        f"the log: the wind, the ships, and whether the lamp burned. One night the lamp went out "
        f"in the middle of a line. {keeper} lit it again, read the half line, and wrote the other "
        f"half behind it. Nobody at sea had noticed more than a blink. In spring {keeper} left "
        f"{thing} on the stairs, gave the log to {heir}, and went down to the harbour."
    )


STORY = "\n\n".join(
    (
        "## The log of the lighthouse",
        *(_chapter(number, keeper) for number, keeper in enumerate(_KEEPERS)),
        "The lamp still burns. Whoever comes up the stairs reads the log first.",
    )
)
