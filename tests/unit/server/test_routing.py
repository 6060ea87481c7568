"""Paths → agents (spec/01 §1.1)."""

from __future__ import annotations

import pytest

from thinkwell.server.routing import (
    AgentRoute,
    NotOurs,
    RouteMatch,
    UnknownChild,
    UnknownClass,
    match_route,
)


def match(path: str, prefix: str = "agents") -> RouteMatch:
    return match_route(path, prefix=prefix, knows={"chat-agent"}.__contains__)


@pytest.mark.parametrize(
    ("path", "tail"),
    [
        ("/agents/chat-agent/alice", ""),
        ("/agents/chat-agent/alice/", ""),
        ("//agents//chat-agent/alice/get-messages", "get-messages"),
        ("/agents/chat-agent/alice/a/b", "a/b"),
        ("/agents/chat-agent/alice/sub/x", "sub/x"),
    ],
)
def test_class_and_name_come_first_and_the_rest_is_the_agents(path: str, tail: str):
    assert match(path) == AgentRoute("chat-agent", "alice", tail)


def test_the_name_stays_percent_encoded():
    assert match("/agents/chat-agent/a%20b%2Fc") == AgentRoute("chat-agent", "a%20b%2Fc", "")


def test_a_prefix_may_have_several_segments():
    assert match("/api/v1/chat-agent/x", "api/v1") == AgentRoute("chat-agent", "x", "")


@pytest.mark.parametrize("path", ["/", "/agents", "/agents/chat-agent", "/other/chat-agent/x"])
def test_other_paths_are_not_ours(path: str):
    assert match(path) == NotOurs()


@pytest.mark.parametrize("name", ["nope", "ChatAgent", "CHAT-AGENT"])
def test_only_the_kebab_form_of_a_known_class_matches(name: str):
    assert match(f"/agents/{name}/x") == UnknownClass()


def test_an_unknown_child_never_falls_through_to_its_parent():
    assert match("/agents/chat-agent/x/sub/child/y") == UnknownChild()
