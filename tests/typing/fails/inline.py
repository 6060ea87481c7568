# type: ignore
"""Hooks that do not fit their event, tools and settings that do not fit their functions."""

from __future__ import annotations

from thinkwell import StepConfig, TurnConfig, create_agent, tool
from thinkwell.hooks import ToolCallContext, TurnContext


def brief(ctx: TurnContext) -> TurnConfig:
    return TurnConfig()


def says_no(ctx: ToolCallContext) -> bool:
    return False


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# E pyright: Argument of type "Literal['2']"
# E mypy: Argument 2 to "add" has incompatible type "str"
add(1, "2")

agent = create_agent(model="demo")
# E pyright: No overloads for "add_hook" match
# E mypy: No overload variant of "add_hook" of "Registration" matches
agent.add_hook("before_trun", brief)
# E pyright: No overloads for "add_hook" match
# E mypy: No overload variant of "add_hook" of "Registration" matches
agent.add_hook("on_chunk", brief)
# E pyright: No overloads for "add_hook" match
# E mypy: No overload variant of "add_hook" of "Registration" matches
agent.add_hook("before_tool_call", says_no)
# E pyright: No overloads for "add_hook" match
# E mypy: No overload variant of "add_hook" of "Registration" matches
agent.add_hook("before_turn", lambda ctx: StepConfig())
# E pyright: "Literal['never']" is not assignable to
# E mypy: Argument "on_max_steps" to "create_agent" has incompatible type
create_agent(model="demo", on_max_steps="never")


# E pyright: Argument of type "Literal['twice']"
# E mypy: No overload variant of "tool" matches argument type "str"
@tool(effect="twice")
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b
