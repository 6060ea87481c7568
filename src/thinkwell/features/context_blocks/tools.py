"""The tools of context blocks: `set_context`, `load_context`, `unload_context`, `search_context`.

They say in text what came of a call and raise nothing (spec/03 §6): a model can act on a
sentence. Writing is `tx`: the new version and the result of the call are one commit. Descriptions
depend on how the blocks are set up, never on what they hold: tools stand at the very beginning of a
request, and a word that changes there costs the whole cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from thinkwell.core.errors import SessionError
from thinkwell.core.json import error_text
from thinkwell.session.blocks.blocks import Blocks
from thinkwell.session.blocks.records import Author, BlockSpec
from thinkwell.session.blocks.render import usage
from thinkwell.session.blocks.unloading import (
    LOAD,
    UNLOAD,
    UNLOADED,
    Document,
    listed,
    loaded_for_model,
)
from thinkwell.session.blocks.writes import entry_key
from thinkwell.session.session import Session
from thinkwell.tools.context import ToolContext
from thinkwell.tools.schema import shallow_validator
from thinkwell.tools.tool import Effect, Tool

_KINDS = {
    "plain": "writable",
    "loadable": "skill collection, keyed entries",
    "searchable": "searchable, keyed entries",
}
_TEXT = {"type": "string"}

_Answer = Callable[[dict[str, Any], ToolContext], Awaitable[str]]


class ContextTools:
    """The tools of one session's blocks."""

    def __init__(self, blocks: Blocks, session: Session) -> None:
        self._blocks = blocks
        self._session = session

    def offered(self, principal: str | None) -> dict[str, Tool]:
        """The tools that the blocks of this person's turn need."""
        specs = self._blocks.specs(principal)
        tools: list[Tool] = []
        if writable := [spec for spec in specs if spec.writable]:
            tools.append(self._set_tool(writable))
        if loadable := [spec for spec in specs if spec.kind == "loadable"]:
            tools += [self._load_tool(loadable), self._unload_tool(loadable)]
        if searchable := [spec for spec in specs if spec.kind == "searchable"]:
            tools.append(self._search_tool(searchable))
        return {tool.name: tool for tool in tools}

    def _set_tool(self, specs: Sequence[BlockSpec]) -> Tool:
        lines = [
            f'- "{s.label}" ({_KINDS[s.kind]}): {s.description or "no description"}' for s in specs
        ]
        keyed = any(spec.kind != "plain" for spec in specs)
        about = (
            "Write to one of the context blocks below. What you write is stored for good and comes "
            'back in later conversations. "replace" puts your text in the place of all that is '
            'there, "append" adds it at the end.'
        )
        properties: dict[str, Any] = {
            "label": _labels(specs),
            "content": _TEXT,
            "action": {"type": "string", "enum": ["replace", "append"]},
        }
        if keyed:
            about += (
                " A block with keyed entries gets one entry per call: give it a title in metadata, "
                "and the same title later to update it; the description is what its list shows."
            )
            properties["metadata"] = {
                "type": "object",
                "properties": {"title": _TEXT, "description": _TEXT},
            }
        description = "\n".join((about, *lines))
        return _tool("set_context", description, properties, self._set, effect="tx")

    def _load_tool(self, specs: Sequence[BlockSpec]) -> Tool:
        about = "Read a whole document of a collection, by a key that the collection lists."
        return _tool(LOAD, about, {"label": _labels(specs), "key": _TEXT}, self._load)

    def _unload_tool(self, specs: Sequence[BlockSpec]) -> Tool:
        about = (
            "Give the room back that a loaded document takes, once it is no longer needed. It can "
            "be loaded again."
        )
        properties = {"label": _labels(specs), "key": _TEXT}
        return _tool(UNLOAD, about, properties, self._unload, effect="tx")

    def _search_tool(self, specs: Sequence[BlockSpec]) -> Tool:
        names = ", ".join(f'"{spec.label}"' for spec in specs)
        about = f"Search what is stored in a block. These can be searched, and no others: {names}."
        properties = {"label": _labels(specs), "query": _TEXT}
        return _tool("search_context", about, properties, self._search)

    # What they do

    async def _set(self, given: dict[str, Any], ctx: ToolContext) -> str:
        label, content = given["label"], given["content"]
        spec, principal = self._blocks.find(label), _person(ctx)
        if spec is None or spec not in self._blocks.specs(principal):
            return f'Error: block "{label}" not found'
        if not spec.writable:
            return f'Error: Block "{label}" is readonly'
        author = Author(
            source="model",
            principal=principal,
            turn=ctx.request_id,
            tool_call_id=ctx.tool_call_id,
        )
        if spec.kind != "plain":
            return await self._set_entry(spec, given, author)
        action, expected = given.get("action", "replace"), None
        if action == "replace" and spec.stored and spec.shared:
            expected, other = await self._blocks.look(spec, principal)
            if other is not None:
                return (
                    f'Error: block "{label}" was changed by another agent since you read it. '
                    f"Nothing was written. It says now:\n{other.content or ''}\n"
                    "Call set_context again with what it should say, or append to it."
                )
        block = await self._blocks.write(spec, action, content, author=author, expected=expected)
        return f"Written to {label}. Usage: {usage(block)}"

    async def _set_entry(self, spec: BlockSpec, given: dict[str, Any], author: Author) -> str:
        said = {n: v for n, v in given.get("metadata", {}).items() if isinstance(v, str)}
        title, description = said.get("title"), said.get("description")
        key = entry_key(given["content"], title)
        await self._blocks.write(
            spec,
            given.get("action", "replace"),
            given["content"],
            author=author,
            key=key,
            description=description or title,
        )
        return f'Indexed "{key}" in {spec.label}.'

    async def _load(self, given: dict[str, Any], ctx: ToolContext) -> str:
        label, key, principal = given["label"], given["key"], _person(ctx)
        if (problem := self._no_skill(label, principal)) is not None:
            return problem
        text = await self._blocks.load(self._blocks.spec(label), key, principal)
        return f"Not found: {key}" if text is None else text

    async def _unload(self, given: dict[str, Any], ctx: ToolContext) -> str:
        document: Document = (given["label"], given["key"])
        if (problem := self._no_skill(given["label"], _person(ctx))) is not None:
            return problem
        loaded = loaded_for_model(ctx.messages)
        if document not in loaded:
            there = ", ".join(listed(loaded)) or "nothing"
            label, key = document
            return f'Skill "{key}" is not currently loaded in "{label}". Loaded now: {there}.'
        await self._session.unload_skill(*document)
        return f'{UNLOADED}"{document[1]}" from {document[0]}. Context reclaimed.'

    async def _search(self, given: dict[str, Any], ctx: ToolContext) -> str:
        label, principal = given["label"], _person(ctx)
        specs = [s for s in self._blocks.specs(principal) if s.kind == "searchable"]
        if label not in [spec.label for spec in specs]:
            names = ", ".join(spec.label for spec in specs)
            return f'Error: "{label}" is not searchable. Searchable blocks: {names}'
        found = await self._blocks.search(self._blocks.spec(label), given["query"], principal)
        return found or "No results found."

    def _no_skill(self, label: str, principal: str | None) -> str | None:
        specs = [s.label for s in self._blocks.specs(principal) if s.kind == "loadable"]
        if label in specs:
            return None
        return f'Error: "{label}" is not a skill block. Skill blocks: {", ".join(specs)}'


def _tool(
    name: str, about: str, properties: dict[str, Any], answer: _Answer, *, effect: Effect = "pure"
) -> Tool:
    optional = {"action", "metadata"}
    schema = {
        "type": "object",
        "properties": properties,
        "required": [each for each in properties if each not in optional],
        "additionalProperties": False,
    }

    async def execute(given: dict[str, Any], ctx: ToolContext) -> str:
        try:
            return await answer(given, ctx)
        except (SessionError, ValueError) as error:
            return f"Error: {error_text(error)}"

    # A wrong label gets our own answer, which says what there is.
    loose = {**schema, "properties": {**properties, "label": _TEXT}}
    return Tool(
        name=name,
        description=about,
        input_schema=schema,
        execute=execute,
        validate=shallow_validator(loose, name),
        effect=effect,
    )


def _labels(specs: Sequence[BlockSpec]) -> dict[str, Any]:
    return {"type": "string", "enum": [spec.label for spec in specs]}


def _person(ctx: ToolContext) -> str | None:
    return None if ctx.principal is None else ctx.principal.id
