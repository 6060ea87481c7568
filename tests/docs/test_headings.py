"""Every hook, setting, config field, error and event has its place in the docs, as the code has it.

A page shows the signature and the fields with their types; they are compared with the code, so a
change of either fails here until the page follows.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from thinkwell import turns
from thinkwell.agent.agent import Agent
from thinkwell.agent.parity import Parity
from thinkwell.agent.think import Think
from thinkwell.cli.main import main
from thinkwell.core import errors
from thinkwell.core.bus_event import type_of
from thinkwell.core.events import Event
from thinkwell.features.turn_details import TurnDetails
from thinkwell.hooks import contexts
from thinkwell.hooks.answers import StepConfig, TurnConfig
from thinkwell.hooks.recovery import ChatRecovery
from thinkwell.hooks.registry import ALIASES, EVENTS
from thinkwell.hooks.seats import features_of
from thinkwell.server.app import App
from thinkwell.tools.output import Output
from thinkwell.tools.scope import Scope
from thinkwell.tools.tool import Tool

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
HOOKS = (*EVENTS, "configure_session", "authorize_turn")
COMMON = contexts.HookContext.__struct_fields__
ROW = re.compile(r"^\| `(\w+)` \| `((?:[^`|]|\\\|)+)` \| (.*) \|$", re.M)
EVENT = re.compile(r"(?:bus|events)\.emit\(\s*([A-Z]\w+)")


def read(name: str) -> str:
    return (DOCS / name).read_text()


def headings(text: str) -> set[str]:
    lines = [line for line in text.splitlines() if line.startswith("#")]
    return {name for line in lines for name in re.findall(r"`@?([\w:]+)", line)}


def signature(function: Any) -> str:
    shown = re.sub(r"'([^']*)'", r"\1", str(inspect.signature(function)))
    return shown.replace("= auto", '= "auto"')


def rows(text: str) -> dict[str, str]:
    """The first two columns of the tables: a name and its type."""
    return {name: kind.replace("\\|", "|") for name, kind, _ in ROW.findall(text)}


def annotation(owner: type, name: str) -> str:
    for base in owner.__mro__:
        found = vars(base).get("__annotations__", {})
        if name in found:
            return re.sub(r"^ClassVar\[(.*)\]$", r"\1", found[name])
    raise AssertionError(f"{owner.__name__} has no {name}")


def types_of(owner: type, names: Any) -> dict[str, str]:
    return {name: annotation(owner, name) for name in names}


def context_of(event: str) -> type | None:
    parameter = inspect.signature(getattr(Think, event)).parameters.get("ctx")
    if parameter is None:
        return None
    if parameter.annotation == "ToolResultContext":  # one of two, which have the same fields
        return contexts.CallEnded
    return getattr(contexts, parameter.annotation)


class TestHooks:
    def test_each_has_a_page_and_no_page_is_left_over(self):
        pages = {path.stem for path in (DOCS / "hooks").glob("*.md")}
        assert pages - {"index"} == set(HOOKS)

    @pytest.mark.parametrize("event", HOOKS)
    def test_the_page_shows_the_signature_of_the_code(self, event: str):
        text = read(f"hooks/{event}.md")
        assert text.startswith(f"# `{event}`\n")
        assert f"\ndef {event}{signature(getattr(Think, event))}\n" in text

    @pytest.mark.parametrize("event", [event for event in HOOKS if context_of(event)])
    def test_the_page_lists_the_fields_of_its_context(self, event: str):
        owner = context_of(event)
        assert owner is not None
        text = read(f"hooks/{event}.md")
        fields = types_of(owner, owner.__struct_fields__)
        shown = {**types_of(contexts.HookContext, COMMON), **rows(text)}
        if "agent" in rows(text):  # the one context without the common fields
            shown = rows(text)
        parameter = inspect.signature(getattr(Think, event)).parameters["ctx"]
        assert f"## `{parameter.annotation}`" in text
        assert shown == fields

    @pytest.mark.parametrize("event", HOOKS)
    def test_the_page_says_when_what_and_shows_an_example(self, event: str):
        text = read(f"hooks/{event}.md")
        found = re.findall(r"^## ([A-Z].*)$", text, re.M)
        assert found == ["When", "What it may return", "If it raises", "Example"]
        assert "```python\n" in text

    def test_the_index_has_a_row_for_each_and_the_common_fields(self):
        text = read("hooks/index.md")
        assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.M)) == set(HOOKS)
        assert rows(text) == types_of(contexts.HookContext, COMMON)

    @pytest.mark.parametrize("alias", ALIASES)
    def test_an_alias_is_named_on_its_page_and_in_the_name_table(self, alias: str):
        assert f"Another name: `{alias}`." in read(f"hooks/{ALIASES[alias]}.md")
        assert f"alias `{alias}`" in read("coming-from.md")

    @pytest.mark.parametrize("event", HOOKS)
    def test_the_name_table_leads_to_every_hook(self, event: str):
        assert f"(hooks/{event}.md)" in read("coming-from.md")


CONFIGS = [
    *(("turn-config", TurnConfig), ("step-config", StepConfig)),
    ("chat-recovery", ChatRecovery),
]


class TestConfigs:
    @pytest.mark.parametrize(("page", "config"), CONFIGS)
    def test_every_field_has_a_row_with_its_type(self, page: str, config: Any):
        expected = types_of(config, config.__struct_fields__)
        assert rows(read(f"config/{page}.md")) == expected

    @pytest.mark.parametrize(("page", "owner"), [("scope", Scope), ("tool", Tool)])
    def test_every_field_of_a_record_has_a_row_with_type_and_default(self, page: str, owner: Any):
        text = read(f"config/{page}.md")
        fields = [field for field in dataclasses.fields(owner) if field.name != "_"]
        assert rows(text) == {field.name: field.type for field in fields}
        defaults = {name: rest.split(" | ")[0] for name, _, rest in ROW.findall(text)}
        assert defaults == {field.name: default_of(field) for field in fields}

    def test_output_shows_its_signature_and_every_parameter(self):
        text = read("config/output.md")
        parameters = list(inspect.signature(Output.__init__).parameters)
        assert f"\ndef __init__{signature(Output.__init__)}\n" in text
        assert list(rows(text)) == parameters[1:]


def default_of(field: Any) -> str:
    required = field.default is dataclasses.MISSING
    return "required" if required else f"`{field.default!r}`".replace("'", '"')


def settings() -> dict[str, Any]:
    """Class attributes with a type and a value: what users set."""
    return {
        name: getattr(owner, name)
        for owner in (Think, Parity, Agent)
        for name in owner.__annotations__
        if name in vars(owner) and not name.startswith("_") and name != "agent_class"
    }


IN_WORDS = {
    "chat_recovery": "`ChatRecovery()`",
    "system_prompt": "a general one",
    "features": "the built-in ones",
}
"""Defaults that a row describes."""


class TestSettings:
    def test_every_setting_has_a_row_with_its_type(self):
        assert rows(read("config/settings.md")) == types_of(Think, settings())

    def test_every_default_is_the_one_of_the_code(self):
        shown = {name: rest for name, _, rest in ROW.findall(read("config/settings.md"))}
        for name, value in settings().items():
            default = IN_WORDS.get(name, f"`{value!r}`")
            assert shown[name].startswith(default.replace("'", '"') + " | "), name


class TestReference:
    def test_every_error_has_a_heading(self):
        raised = {
            name
            for name, value in vars(errors).items()
            if inspect.isclass(value) and issubclass(value, BaseException)
        }
        assert sorted(raised - headings(read("reference.md"))) == []

    def test_every_bus_event_is_told_somewhere_and_has_a_heading_with_its_class_and_fields(self):
        sources = (ROOT / "src" / "thinkwell").rglob("*.py")
        emitted = {name for path in sources for name in EVENT.findall(path.read_text())}
        events = {kind.__name__: kind for kind in get_args(Event)}
        assert emitted == set(events)
        chapter = read("reference.md").split("\n## Events")[1].split("\n## ")[0]
        sections = {part.partition("\n")[0]: part for part in chapter.split("\n### ")[1:]}
        for name, kind in events.items():
            section = sections[f"`{type_of(kind)}`, `{name}`"]
            own = set(kind.__struct_fields__) - {"type", "agent"}
            assert [field for field in sorted(own) if f"`{field}`" not in section] == [], name

    def test_every_command_has_a_heading(self):
        shown = set(re.findall(r"^### `thinkwell (\w+)", read("reference.md"), re.M))
        assert shown == set(main.commands)

    def test_every_parameter_of_the_app_has_a_row(self):
        section = read("reference.md").split("### `App`")[1].split("\n## ")[0]
        shown = {name for row in first_cells(section) for name in row}
        parameters = set(inspect.signature(App.__init__).parameters) - {"self", "agents"}
        assert parameters - shown == set()

    def test_the_page_about_the_server_lists_every_option_of_the_app(self):
        table = read("server.md").split("## Routes")[0]
        shown = [name for row in first_cells(table) for name in row]
        assert sorted(shown) == sorted(set(inspect.signature(App.__init__).parameters) - {"self"})

    def test_every_member_of_an_agent_has_a_row(self):
        section = read("reference.md").split("### `Agent`")[1].split("\n### ")[0]
        shown = {name for row in first_cells(section) for name in row}
        elsewhere = {"name", "agent_class", "on_start", *Agent.__annotations__}
        members = {name for name in vars(Agent) if not name.startswith("_")}
        assert members - shown - elsewhere == set()


def first_cells(text: str) -> list[list[str]]:
    """The names in the first column of each row of the tables."""
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.M)
    return [re.findall(r"`(?:await )?(\w+)", cell) for cell in cells]


class TestCalls:
    def test_every_call_that_comes_with_a_chat_agent_has_a_row(self):
        found = re.findall(
            r"^\| `(\w+)\([\w, ]*\)` \| `([\w.]+)` \|", read("state-and-rpc.md"), re.M
        )
        built_in = {
            name: f"{feature.name}.{call.__name__}"
            for feature in features_of(Think)
            for name, call in feature.calls().items()
        }
        assert dict(found) == built_in

    def test_the_fields_of_turn_details_are_named(self):
        text = read("state-and-rpc.md")
        assert [f for f in TurnDetails.__struct_encode_fields__ if f"`{f}`" not in text] == []

    def test_the_page_calls_what_the_agent_has(self):
        text = read("state-and-rpc.md")
        called = set(re.findall(r'agent\.call\("(\w+)"', text))
        named = set(re.findall(r'@rpc\(name="(\w+)"\)', text)) | {"add"}
        assert called
        assert called <= named


class TestWords:
    @pytest.mark.parametrize("name", ["TurnStatus", "EndStatus", "Trigger", "StopReason"])
    def test_the_reference_names_every_word_of_a_status(self, name: str):
        text = read("reference.md")
        sections = text.split("### `TurnStatus`")[1].split("### `Submission`")[0]
        assert [w for w in get_args(getattr(turns, name)) if f"`{w}`" not in sections] == []

    def test_every_kind_of_event_has_the_type_of_its_row(self):
        text = read("reference.md").split("### `AgentEvent`")[1].split("\n### ")[0]
        for event in get_args(turns.AgentEvent):
            assert f"`{event.__name__}`" in text
            assert f"`{event.type}`" in text
