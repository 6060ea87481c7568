"""Keeps of each reply only its first part."""

from __future__ import annotations

from tests.chaos.broken.base import Till, change_store
from thinkwell import App

change_store(
    "UPDATE messages SET content = json_set(content, '$.parts', json_array("
    "json_extract(content, '$.parts[0]'))) WHERE role = 'assistant' AND id NOT IN "
    "(SELECT message_id FROM turns WHERE id LIKE 'chaos-rehearsal%')"
)

app = App(agents=[Till])
