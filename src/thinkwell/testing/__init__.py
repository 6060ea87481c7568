"""Public fakes for tests of agents: a scripted model, a loud mock provider, and recorded turns.

The mock provider brings an HTTP server; import it from `thinkwell.testing.mock_provider`.
"""

from thinkwell.testing.prefix import assert_prefix_stable
from thinkwell.testing.replaying import replay
from thinkwell.testing.scripted import (
    Gate,
    ScriptedModel,
    call,
    error,
    finish,
    pause,
    reasoning,
    text,
)

__all__ = [
    "Gate",
    "ScriptedModel",
    "assert_prefix_stable",
    "call",
    "error",
    "finish",
    "pause",
    "reasoning",
    "replay",
    "text",
]
