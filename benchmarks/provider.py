"""The mock provider both subjects talk to, and the names of its models."""

from __future__ import annotations

from benchmarks.processes import Listener

DELTAS = 2_000
SMALL_DELTAS = 2
INTERVAL_MS = 1

BURST = f"burst-{DELTAS}"
PACED = f"paced-{DELTAS}-{INTERVAL_MS}"
SMALL = f"burst-{SMALL_DELTAS}"

TOOL_CALL = 'get_weather:{"city":"Oslo"}'


def start_provider(*options: str) -> Listener:
    """An OpenAI-compatible server on loopback, in a process of its own."""
    return Listener(["-m", "thinkwell.testing.mock_provider", "--port", "0", *options])


def start_tool_provider() -> Listener:
    """The same, but it asks for a tool before it answers."""
    return start_provider("--call", TOOL_CALL)
