"""Forgets at each start what it was working on."""

from __future__ import annotations

from tests.chaos.broken.base import Till, change_store
from thinkwell import App

change_store("DELETE FROM turns WHERE status = 'running'")

app = App(agents=[Till])
