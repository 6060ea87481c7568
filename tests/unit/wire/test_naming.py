"""The kebab rule (spec/01 §1.1.2)."""

from __future__ import annotations

import pytest

from thinkwell.wire.naming import kebab_case


@pytest.mark.parametrize(
    ("name", "kebab"),
    [
        ("ChatAgent", "chat-agent"),
        ("LOUD_AGENT", "loud-agent"),
        ("AIAssistant", "a-i-assistant"),
        ("TestOAuthAgent", "test-o-auth-agent"),
        ("My_Agent", "my--agent"),
        ("user_agent", "user-agent"),
        ("AI2", "ai2"),
        ("Agent_", "agent"),
    ],
)
def test_spells_class_names_as_the_clients_do(name: str, kebab: str):
    assert kebab_case(name) == kebab
