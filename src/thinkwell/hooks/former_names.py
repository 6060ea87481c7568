"""Settings and methods that agents had once, and what to write instead.

A class that still has one would go on without a word and without its effect, so it is refused; a
call of one is answered with the new name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from thinkwell.core.errors import AgentDefinitionError
from thinkwell.tools.tool import is_tool

SETTINGS: Final = {
    "cancel_grace": '`time_limits = {"grace": 5}`',
    "max_recovery_attempts": (
        "`chat_recovery = ChatRecovery(max_attempts=3)` with `from thinkwell import ChatRecovery`"
    ),
    "suggestions": (
        '`features = [Suggestions({"A tour": "What can you do?"})]` with '
        "`from thinkwell.features import Suggestions`"
    ),
}
METHODS: Final = {
    "get_branches": ("branches", "below", "getBranches"),
    "set_active_leaf": ("branches", "choose", "setActiveLeaf"),
    "get_turn_details": ("turn_details", "get", "getTurnDetails"),
}
"""The feature that has it now, its method there, and what clients call."""


def hint(name: str) -> str:
    """A sentence for whoever asks for a name that has gone; empty for every other."""
    if name in SETTINGS:
        return f" It is {SETTINGS[name]} now."
    if name in METHODS:
        feature, method, _ = METHODS[name]
        return f" It is `{feature}.{method}` now."
    return ""


def refuse_former(cls: type, members: Mapping[str, Any], features: Collection[str]) -> None:
    """Refuse what a class body still has; `features` are those of the class.

    Whoever leaves the feature out may use the name for something of their own.
    """
    for name in SETTINGS.keys() & members.keys():
        # A method or a property of that name was never the setting.
        if not callable(members[name]) and not hasattr(members[name], "__get__"):
            raise AgentDefinitionError(
                f"{cls.__name__}.{name} would do nothing: it is no setting any more. Write "
                f"{SETTINGS[name]}."
            )
    for name in METHODS.keys() & members.keys():
        feature, method, call = METHODS[name]
        if feature in features and not is_tool(members[name]):
            raise AgentDefinitionError(
                f"{cls.__name__}.{name} would never be called: clients that call {call!r} reach "
                f"`{feature}.{method}` now. Use that; to answer them yourself, write "
                f'`features = [Without("{feature}")]` with `from thinkwell.features import '
                f'Without`, and mark the method with `@rpc(name="{call}")`.'
            )
