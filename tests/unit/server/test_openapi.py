"""The description of the HTTP routes."""

from __future__ import annotations

import json
from typing import Any

from thinkwell.server.openapi import describe


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set[str]()
        return own.union(*(references(item) for item in value.values()))
    if isinstance(value, list):
        return set[str]().union(*(references(item) for item in value))
    return set()


def test_it_names_every_route_below_its_prefix():
    document = describe(["assistant"], "api/agents", "/mounted")
    assert document["servers"] == [{"url": "/mounted"}]
    assert [path for path in document["paths"] if path.startswith("/api")] == [
        "/api/agents/{class}/{name}/get-messages",
        "/api/agents/{class}/{name}/run",
        "/api/agents/{class}/{name}/run/{requestId}",
        "/api/agents/{class}/{name}/chat",
        "/api/agents/{class}/{name}/chat/stop",
        "/api/agents/{class}/{name}/chat/{chatId}/stream",
    ]


def test_without_a_prefix_paths_begin_with_the_class():
    assert "/{class}/{name}/run" in describe([], "", "")["paths"]


def test_it_is_json_and_every_reference_leads_somewhere():
    document = json.loads(json.dumps(describe(["a"], "agents", "")))
    for reference in references(document):
        place: Any = document
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]
