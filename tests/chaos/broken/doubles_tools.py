"""Runs every call again whose outcome is unknown, whatever its tool declares."""

from __future__ import annotations

from tests.chaos.broken.base import Till
from thinkwell import App
from thinkwell.turn.run import tool_policy, tool_run

tool_policy.after_cut = lambda claimed, tool: "run"
tool_run.REPEATABLE = ("pure", "idempotent", "tx", "once")

app = App(agents=[Till])
