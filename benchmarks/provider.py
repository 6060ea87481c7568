"""The mock providers all subjects talk to, and the names of their models."""

from __future__ import annotations

import sys

from benchmarks.processes import Listener

DELTAS = 2_000
SMALL_DELTAS = 2
INTERVAL_MS = 1

BURST = f"burst-{DELTAS}"
PACED = f"paced-{DELTAS}-{INTERVAL_MS}"
SMALL = f"burst-{SMALL_DELTAS}"
CROWD_DELTAS = 200
CROWD = f"burst-{CROWD_DELTAS}"
MODELS = (SMALL, CROWD, BURST, PACED)
"""What is asked of a peer; some peers need to know it when they start."""

TOOL_CALL = 'get_weather:{"city":"Oslo"}'


def start_provider(*options: str) -> Listener:
    """An OpenAI-compatible server on loopback, in a process of its own."""
    module = "thinkwell.testing.mock_provider"
    return Listener([sys.executable, "-m", module, "--port", "{port}", *escaped(options)])


def start_tool_provider() -> Listener:
    """The same, but it asks for a tool before it answers."""
    return start_provider("--call", TOOL_CALL)


def start_stamping_provider() -> Listener:
    """The fast one, whose deltas say when they were sent."""
    return Listener([sys.executable, "-m", "benchmarks.stamping_provider", "{port}"])


def escaped(options: tuple[str, ...]) -> list[str]:
    """Options that may hold braces, for a command in which `{port}` is replaced."""
    return [option.replace("{", "{{").replace("}", "}}") for option in options]
