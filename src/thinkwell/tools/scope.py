"""Scopes: tools and context that belong to a place of the application (spec/02 §12.5-12.7).

A page, a document, a mode: while its scope is registered and enabled, its tools are offered and its
context is put into every request. Owns the record and how the context of several scopes becomes
text; `scope_registry.py` says which scopes there are. Sections live in the outgoing request only.

Invariant: a scope that fails to give its context loses its section, never the turn; the messages
handed in are not changed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ToolDefinitionError
from thinkwell.core.user_code import call_user
from thinkwell.messages.model_messages import ModelMessage, TextContent, UserMessage
from thinkwell.tools.tool import as_tool, check_switch, is_switched_on

log = logging.getLogger("thinkwell.scopes")

Injection = Literal["system", "user"]


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """Tools and context under one name. Two scopes are the same only if they are one object."""

    name: str
    """Unique among the registered scopes."""
    _: KW_ONLY
    label: str | None = None
    """The heading of its section; the name if left out."""
    tools: Sequence[Any] = ()
    """Its tools: `Tool`s, functions or pydantic-ai tools. Kept as a tuple of `Tool`."""
    context: Any = None
    """What the model should know: a value, or a function, sync or async, asked before each step."""
    injection: Injection = "system"
    """Where the section goes: after the system prompt, or after the last user message."""
    enabled: Callable[[], bool] | None = None
    """Asked before every step and every call; False or an error hides the whole scope."""

    def __post_init__(self) -> None:
        """Turn the tools into `Tool`s; refuse what could never work."""
        if not self.name:
            raise ToolDefinitionError("A scope needs a name: Scope('cart', tools=[...]).")
        if self.injection not in ("system", "user"):
            raise ToolDefinitionError(
                f"Scope {self.name!r} has injection={self.injection!r}. Use 'system' or 'user'."
            )
        check_switch(self.enabled, f"scope {self.name!r}")
        object.__setattr__(self, "tools", tuple(as_tool(item) for item in self.tools))

    @property
    def heading(self) -> str:
        """What stands above its section."""
        return self.label or self.name

    def is_enabled(self) -> bool:
        """Whether its tools and context may be used now."""
        return is_switched_on(self.enabled)


class ScopeSections(msgspec.Struct, frozen=True):
    """The context of all enabled scopes as text; empty where there is none."""

    system: str = ""
    """Goes after the system prompt."""
    user: str = ""
    """Goes after the last user message; see `inject_user`."""


async def render_sections(scopes: Iterable[Scope]) -> ScopeSections:
    """Ask every enabled scope for its context and render it (spec/02 §12.7)."""
    asked = [scope for scope in scopes if scope.context is not None and scope.is_enabled()]
    if not asked:
        return ScopeSections()
    texts = await asyncio.gather(*(_section(scope) for scope in asked))
    found: dict[Injection, list[str]] = {"system": [], "user": []}
    for scope, text in zip(asked, texts, strict=True):
        if text is not None:
            found[scope.injection].append(text)
    return ScopeSections("\n\n".join(found["system"]), "\n\n".join(found["user"]))


def inject_user(messages: Sequence[ModelMessage], text: str) -> tuple[ModelMessage, ...]:
    """The messages with `text` after the text of the last user message, if there is one."""
    for place in reversed(range(len(messages) if text else 0)):
        message = messages[place]
        if isinstance(message, UserMessage):
            return (*messages[:place], _with_text(message, text), *messages[place + 1 :])
    return tuple(messages)


def _with_text(message: UserMessage, text: str) -> UserMessage:
    content = list(message.content)
    for index in reversed(range(len(content))):
        part = content[index]
        if isinstance(part, TextContent):
            # One part, because not every provider keeps two texts of a message apart.
            content[index] = TextContent(f"{part.text}\n\n{text}")
            return UserMessage(tuple(content))
    return UserMessage((*content, TextContent(text)))


async def _section(scope: Scope) -> str | None:
    try:
        given = scope.context
        value = await call_user(f"scope {scope.name!r}", given) if callable(given) else given
        text = _text(await value if inspect.isawaitable(value) else value)
    except Exception:  # a turn can do without the section
        log.warning(
            "the context of a scope was left out", exc_info=True, extra={"action": scope.name}
        )
        return None
    return None if text is None else f"## {scope.heading}\n{text}"


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    return None if value is None else json.dumps(json.to_jsonable(value))
