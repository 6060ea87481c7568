"""DESIGN §4: the front door is small, real and documented."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from typing import Any

import pytest

import thinkwell
from tests.architecture.support import MODULES, PACKAGE, ROOT, run_python
from thinkwell.agent.parity import Parity
from thinkwell.core.events import TYPES
from thinkwell.host.stub import namespaces_of

MOST_NAMES = 45
MOST_NAMES_OF_THINK = 70
"""Without those of the references. Only ever lower."""

REFERENCES = {
    # Cloudflare's Think and its README
    "chat": "chat",
    "chatRecovery": "chat_recovery",
    "chatStreamStallTimeoutMs": "chat_stream_stall_timeout",
    "continueLastTurn": "continue_last_turn",
    "getOnStartDegradations": "get_on_start_degradations",
    "hasPendingInteraction": "has_pending_interaction",
    "hydrationByteBudget": "hydration_byte_budget",
    "onChatRecovery": "on_chat_recovery",
    "repairInterruptedToolPart": "repair_interrupted_tool_part",
    "resetTurnState": "reset_turn_state",
    "runTurn": "run_turn",
    "saveMessages": "save_messages",
    "stash": "stash",
    "submitMessages": "submit_messages",
    "waitUntilStable": "wait_until_stable",
    # Cloudflare's Agents: `static options = { retry: ... }`
    "options.retry": "retry_options",
    # Cloudflare's Agents: fibers
    "cancelFiber": "cancel_fiber",
    "cancelFiberByKey": "cancel_fiber_by_key",
    "deleteFibers": "delete_fibers",
    "inspectFiber": "inspect_fiber",
    "inspectFiberByKey": "inspect_fiber_by_key",
    "keepAlive": "keep_alive",
    "keepAliveWhile": "keep_alive_while",
    "listFibers": "list_fibers",
    "onFiberRecovered": "on_fiber_recovered",
    "resolveFiber": "resolve_fiber",
    "runFiber": "run_fiber",
    "startFiber": "start_fiber",
    # what the reference has on every agent, for later work
    "cancelSchedule": "cancel_schedule",
    "dequeue": "dequeue",
    "dequeueAll": "dequeue_all",
    "dequeueAllByCallback": "dequeue_all_by_callback",
    "getDefaultTimezone": "get_default_timezone",
    "getQueue": "get_queue",
    "getQueues": "get_queues",
    "getScheduleById": "get_schedule_by_id",
    "getScheduledTasks": "get_scheduled_tasks",
    "listSchedules": "list_schedules",
    "queue": "queue",
    "reconcileScheduledTasks": "reconcile_scheduled_tasks",
    "retry": "retry",
    "schedule": "schedule",
    "scheduleEvery": "schedule_every",
    # AG2B
    "chatStream": "chat_stream",
    "history": "history",
    "onChatAbort": "on_chat_abort",
    "onChatDone": "on_chat_done",
    "onScopeRegister": "on_scope_register",
    "onScopeUnregister": "on_scope_unregister",
    "use": "use",
}
"""Their name and ours, for what has another way here."""

IMPORTED = re.compile(r"Imported from `(thinkwell[\w.]*)`")
IMPORT = re.compile(r"^\s*from (thinkwell[\w.]*) import (\([^)]*\)|[^\n]+)$", re.M)


def reference() -> str:
    return (ROOT / "docs" / "reference.md").read_text()


def headings() -> set[str]:
    """Every `name` that stands in a heading of the reference."""
    lines = [line for line in reference().splitlines() if line.startswith("#")]
    return {name for line in lines for name in re.findall(r"`@?([A-Za-z_]+)", line)}


def public_members(owner: Any) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


@pytest.mark.parametrize("module", ["thinkwell", *(f"thinkwell.{name}" for name in MODULES)])
class TestModules:
    def test_every_name_in_all_can_be_imported(self, module: str):
        found = import_module(module)
        assert [name for name in found.__all__ if not hasattr(found, name)] == []

    def test_all_is_sorted(self, module: str):
        names = list(import_module(module).__all__)
        assert names == sorted(set(names))

    def test_every_class_and_function_has_a_docstring(self, module: str):
        found = import_module(module)
        named = {name: getattr(found, name) for name in found.__all__}
        explained = {n: v for n, v in named.items() if inspect.isclass(v) or inspect.isfunction(v)}
        assert [n for n, value in explained.items() if not (value.__doc__ or "").strip()] == []

    def test_every_name_stands_in_the_reference(self, module: str):
        named = set(re.findall(r"`@?([A-Za-z_]+)", reference()))
        assert sorted(set(import_module(module).__all__) - named) == []


def homes() -> dict[str, str]:
    """Every name with a heading that is no member of an agent, and where the reference has it."""
    found: dict[str, str] = {}
    members = public_members(thinkwell.Think) | namespaces_of(thinkwell.Think)
    for chapter in reference().split("\n## ")[1:]:
        intro, *sections = chapter.split("\n### ")
        for section in sections:
            names = re.findall(r"`@?(\w+)`", section.partition("\n")[0])
            said = IMPORTED.search(section) or IMPORTED.search(intro)
            home = "thinkwell" if said is None else said[1]
            # The type of an event is a text: its class stands beside it.
            found |= {name: home for name in names if name not in members and name not in TYPES}
    return found


def test_every_name_can_be_imported_from_where_the_reference_says():
    assert len(homes()) > 100
    lost = [(n, home) for n, home in homes().items() if not hasattr(import_module(home), n)]
    assert lost == []


def test_every_import_that_a_document_shows_works():
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [found for path in documents for found in IMPORT.findall(path.read_text())]
    assert shown
    lost = [
        (home, name)
        for home, names in shown
        for name in re.findall(r"\w+", names)
        if not hasattr(import_module(home), name)
    ]
    assert lost == []


def test_a_name_that_has_moved_works_and_says_where_to():
    from thinkwell import _MOVED  # pyright: ignore[reportPrivateUsage]

    assert not set(_MOVED) & set(thinkwell.__all__)
    for name, home in _MOVED.items():
        with pytest.warns(DeprecationWarning, match=f"from {home} import {name}") as told:
            assert getattr(thinkwell, name) is getattr(import_module(home), name)
        assert told[0].filename == __file__


def test_modules_can_be_reached_as_attributes():
    assert (
        run_python("import thinkwell; print(thinkwell.errors.ToolError.__name__)") == "ToolError\n"
    )


def test_the_front_door_is_small():
    assert len(thinkwell.__all__) <= MOST_NAMES


def test_all_names_everything_that_type_checkers_see():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if (node.module or "").startswith("thinkwell.")]
    assert {alias.name for node in ours for alias in node.names} == set(thinkwell.__all__)


def test_every_public_name_has_a_heading_in_the_reference():
    assert sorted(set(thinkwell.__all__) - headings()) == []


def test_think_stays_within_its_number_of_public_names():
    own = public_members(thinkwell.Think) - public_members(Parity)
    assert len(own) <= MOST_NAMES_OF_THINK, sorted(own)


def test_the_parity_mixin_has_the_names_of_the_references_and_no_others():
    assert public_members(Parity) == set(REFERENCES.values())


def test_whoever_comes_from_a_reference_finds_each_of_its_names():
    guide = (ROOT / "docs" / "coming-from.md").read_text()
    assert [name for pair in REFERENCES.items() for name in pair if name not in guide] == []


def test_every_public_name_of_think_is_documented():
    documented = set(re.findall(r"`@?([A-Za-z_]+)", reference()))
    named = public_members(thinkwell.Think) | namespaces_of(thinkwell.Think)
    assert sorted(named - documented) == []


def test_a_namespace_is_made_when_the_agent_wakes():
    """So the class has no member of that name, and a stub knows it for one."""
    assert {"jobs", "scopes", "session"} <= namespaces_of(thinkwell.Think)


def test_every_method_of_think_has_a_docstring():
    methods = {n: getattr(thinkwell.Think, n) for n in public_members(thinkwell.Think)}
    silent = [n for n, m in methods.items() if inspect.isroutine(m) and not inspect.getdoc(m)]
    assert silent == []


def test_every_error_has_a_heading_in_the_reference():
    from thinkwell.core import errors

    raised = {n for n, v in vars(errors).items() if inspect.isclass(v) and issubclass(v, Exception)}
    assert sorted(raised - headings()) == []
