"""The features of one agent, bound to it, and all they bring, in one place (DESIGN §3).

`features_of` says which features a class has and refuses clashes, before anything runs. `Seats`
holds the copies of one activation and asks them: the turn for tools and prompt, the agent for the
rest. A method that a feature does not override is not called. An error that leaves here names its
feature.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any, NamedTuple

from thinkwell.core.errors import AgentDefinitionError, FeatureError, ToolDefinitionError
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.core.tasks import CLOSING, TaskOwner, run_apart
from thinkwell.core.user_code import call_hook, in_hook, log_failure
from thinkwell.hooks.brought import check_jobs, checked, listed, marks_of
from thinkwell.hooks.contexts import HookContext
from thinkwell.hooks.feature import Feature, Kit, Unwoken, Without
from thinkwell.hooks.jobs import JobHandlers
from thinkwell.hooks.registry import HookRegistry
from thinkwell.hooks.routes import TRANSCRIPT, Route, check_route, hidden_methods
from thinkwell.journal.joined_writes import Together
from thinkwell.tools.tool import Tool, as_tool

log = logging.getLogger("thinkwell.features")


# Which features a class has


def features_of(cls: type, shared: Sequence[Feature] = ()) -> tuple[Feature, ...]:
    """The features of a class, those of its bases first, then those of the app.

    Raises `AgentDefinitionError` where two things would have one name. A subclass may give a
    feature of its base anew, with an object of the same kind.
    """
    found: dict[str, tuple[Feature, str]] = {}
    for base in reversed(cls.__mro__):
        for feature in listed(vars(base).get("features", ()), f"{base.__name__}.features"):
            if isinstance(feature, Without):
                _leave_out(found, feature, f"{base.__name__}.features")
                continue
            _check(feature, f"{base.__name__}.features", cls, base)
            _take(found, feature, f"{base.__name__}.features")
    for feature in shared:
        _check(feature, "App(features=...)", cls, None)
        _take(found, feature, "App(features=...)")
    return tuple(feature for feature, _ in found.values())


def left_out(cls: type, name: str) -> bool:
    """Whether a class does without a feature that one of its bases has."""
    lists = (listed(vars(base).get("features", ()), base.__name__) for base in cls.__mro__)
    without = any(isinstance(f, Without) and name in f.names for each in lists for f in each)
    return without and all(feature.name != name for feature in features_of(cls))


def _leave_out(found: dict[str, tuple[Feature, str]], without: Without, where: str) -> None:
    for name in without.names:
        if found.pop(name, None) is None:
            known = ", ".join(sorted(found)) or "none"
            raise AgentDefinitionError(
                f"{where} leaves out {name!r}, but there is no such feature. There are: {known}."
            )


def _take(found: dict[str, tuple[Feature, str]], feature: Feature, where: str) -> None:
    other, listed = found.get(feature.name, (None, ""))
    if other is not None and (listed == where or not isinstance(feature, type(other))):
        raise AgentDefinitionError(
            f"Two features are named {feature.name!r}: {type(other).__name__} in {listed} and "
            f"{type(feature).__name__} in {where}. Leave one out, or give it another `name`."
        )
    found[feature.name] = (feature, where)


def _check(value: Any, where: str, cls: type, base: type | None) -> None:
    if isinstance(value, type):
        raise AgentDefinitionError(
            f"{where} has the class {value.__name__}. Write `{value.__name__}()`: a feature is an "
            "object."
        )
    if isinstance(value, Without):
        names = ", ".join(map(repr, value.names))
        raise AgentDefinitionError(
            f"{where} has Without({names}). What a class does not want it leaves out itself: write "
            f"`features = [Without({names})]` on the class."
        )
    if not isinstance(value, Feature):
        raise AgentDefinitionError(f"{where} has {value!r}, which is no Feature.")
    name = getattr(value, "name", None)
    kind = type(value).__name__
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise AgentDefinitionError(
            f'{kind} in {where} needs a `name` to be found by, for example `name = "notes"`; '
            f"{name!r} is none."
        )
    marks_of(type(value))  # refuses what would mean nothing
    member = _member(cls, name, base) if value.namespace else None
    if member is not None:
        raise AgentDefinitionError(
            f"The feature {kind} in {where} is named {name!r} and would hide {member}. Give one "
            "of them another name."
        )


def _member(cls: type, name: str, listed_by: type | None) -> str | None:
    """What an agent has under this name without the feature.

    Whoever lists a feature may annotate it, and so may every class of a user: that is how its
    type is known.
    """
    for base in cls.__mro__:
        ours = base.__module__.startswith("thinkwell.") and base is not listed_by
        if name in vars(base) or (ours and name in vars(base).get("__annotations__", ())):
            return f"{base.__name__}.{name}"
    return None


def page_settings(
    classes: Mapping[str, type], shared: Sequence[Feature] = ()
) -> dict[str, dict[str, Any]]:
    """What the page is told by features: by the name of the fact, then by agent class."""
    told: dict[str, dict[str, Any]] = {}
    for agent_class, cls in classes.items():
        for feature in features_of(cls, shared):
            with _named(feature, "page"):
                page = checked("page", feature.page(cls))
            for name, value in page.items():
                told.setdefault(name, {})[agent_class] = value
    return told


# What they bring


class Offered(NamedTuple):
    """A tool, and whose it is."""

    tool: Tool
    owner: str


class OwnedRoute(NamedTuple):
    """A route, and whose it is."""

    route: Route
    owner: str


def place(unwoken: Unwoken, templates: Sequence[Feature]) -> None:
    """Give an agent that is not awake the namespaces that can be used before the start."""
    for template in templates:
        if type(template).on_made is not Feature.on_made:
            feature = copy(template)
            setattr(unwoken.agent, feature.name, feature)
            with _named(feature, "on_made"):
                feature.on_made(unwoken)


class Seats:
    """The features of one agent that is awake."""

    def __init__(
        self, agent: Any, templates: Sequence[Feature], kit_of: Callable[[str], Kit]
    ) -> None:
        self._agent = agent
        self._kit_of = kit_of
        self._registry: HookRegistry | None = None
        self._features: list[Feature] = []
        self._known: dict[str, Tool] = {}
        self._disposers: list[Disposer] = []
        self._tasks = TaskOwner("features")
        for template in templates:
            # What was placed before the start keeps what was put into it.
            placed: Any = agent.__dict__.get(template.name)
            feature = placed if isinstance(placed, type(template)) else copy(template)
            feature.kit = kit_of(feature.name)
            if feature.namespace:
                setattr(agent, feature.name, feature)
            self._features.append(feature)
        self._with_tools = [
            f for f in self._features if _overrides(f, "tools") or marks_of(type(f)).tools
        ]
        self._with_prompt = self._overriding("prompt")
        self._greeting = self._overriding("greet")
        self.calls: Mapping[str, Callable[..., Any]] = {}
        """What clients may call beside the agent's own methods."""
        self.routes: Sequence[OwnedRoute] = ()
        """What they serve over HTTP."""

    def connect(
        self, registry: HookRegistry | None, handlers: JobHandlers, taken: Mapping[str, Any]
    ) -> None:
        """Ask for hooks, calls, routes and jobs; `taken` are the calls the class has itself."""
        self._registry = registry
        if registry is not None:
            brought = {feature.name: hooks for feature, hooks in self._ask("hooks")}
            for feature in self._features:
                with _named(feature, "hooks"):
                    self._add_hooks(registry, feature, brought.get(feature.name, {}))
        self.calls = self._gather_calls(taken)
        self.routes = tuple(self._gather_routes(chats=registry is not None))
        for feature, jobs in self._ask("jobs"):
            with _named(feature, "jobs"):
                check_jobs(jobs)
            handlers.add(feature.name, jobs)

    def seat(self, feature: Feature) -> None:
        """One more feature of ours, which brings tools and hooks only: also while turns run."""
        feature.kit = self._kit_of(feature.name)
        self._features.append(feature)
        self._with_tools.append(feature)
        if self._registry is not None:  # else `connect` is still to come
            self._add_hooks(self._registry, feature, {})

    def _add_hooks(
        self, registry: HookRegistry, feature: Feature, named: Mapping[str, Callable[..., Any]]
    ) -> None:
        for event, call in named.items():
            added = registry.add(event, call, name=f"{feature.name}.{event}")
            self._disposers.append(added)
        for attribute, event, timeout in marks_of(type(feature)).hooks:
            call = getattr(feature, attribute)
            if call not in named.values():
                name = f"{feature.name}.{attribute}"
                self._disposers.append(registry.add(event, call, name=name, timeout=timeout))

    def _gather_calls(self, taken: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
        calls: dict[str, Callable[..., Any]] = {}
        owners = dict.fromkeys(taken, type(self._agent).__name__)
        brought = {feature.name: named for feature, named in self._ask("calls")}
        for feature in self._features:
            for name, call, owner in _calls_of(feature, brought.get(feature.name, {})):
                if name in owners:
                    raise AgentDefinitionError(
                        f"Clients that call {name!r} would mean both {owners[name]} and {owner}. "
                        "Rename one of the calls."
                    )
                owners[name], calls[name] = owner, call
        return calls

    def _gather_routes(self, *, chats: bool) -> Iterator[OwnedRoute]:
        before: list[OwnedRoute] = []
        for feature, routes in self._ask("routes"):
            for route in routes:
                check_route(route, _title(feature))
                owned = OwnedRoute(route, feature.name)
                _refuse_hidden(owned, before, chats=chats)
                before.append(owned)
                yield owned

    def _ask(self, method: str) -> list[tuple[Feature, Any]]:
        """What each feature that overrides a method returns."""
        brought: list[tuple[Feature, Any]] = []
        for feature in self._overriding(method):
            with _named(feature, method):
                brought.append((feature, checked(method, getattr(feature, method)())))
        return brought

    async def boot(self) -> None:
        """Let each read what it has stored, in order."""
        for feature in self._overriding("on_boot"):
            with _named(feature, "on_boot"):
                await call_hook(f"{feature.name}.on_boot", feature.on_boot, feature.kit)

    # For the turn

    def tools(self, turn: HookContext) -> dict[str, Offered]:
        """What they offer in a turn. Two with one name are an error that names both."""
        offered: dict[str, Offered] = {}
        for feature in self._with_tools:
            with _named(feature, "tools"):
                given = checked("tools", feature.tools(turn))
                brought = {n: as_tool(value, n) for n, value in given.items()}
            for name, tool in brought.items():
                if name in offered:
                    raise ToolDefinitionError(
                        f"The tool {name!r} belongs to {offered[name].owner} and to "
                        f"{_title(feature)}. Rename one of them."
                    )
                offered[name] = Offered(tool, _title(feature))
        self._known.update({name: each.tool for name, each in offered.items()})
        return offered

    def find_tool(self, name: str) -> Tool | None:
        """A tool they offered, or would offer, outside of any turn."""
        if name not in self._known and self._with_tools:
            try:
                self.tools(
                    HookContext(
                        request_id="",
                        trigger="auto-continuation",
                        continuation=True,
                        agent=self._agent,
                        abort_signal=AbortSignal(),
                    )
                )
            except Exception:
                log.exception("a feature cannot say which tools it has", extra={"tool": name})
        return self._known.get(name)

    def prompt(self, turn: HookContext) -> list[str]:
        """Their lines of the capability block."""
        lines: list[str] = []
        for feature in self._with_prompt:
            with _named(feature, "prompt"):
                text = checked("prompt", feature.prompt(turn))
                lines += [text] if text else []
        return lines

    async def forget(self, agent_id: str, limit: float | None) -> Together:
        """The conversation is cleared: what they write belongs to the clear's transaction."""
        whole = Together(agent_id)
        for feature in self._overriding("on_clear"):
            collected = Together(agent_id)
            if await self._notify(feature, "on_clear", limit, collected):
                whole.take(collected)  # one that fails half-way writes nothing
        return whole

    # For the agent

    def greet(self, connection: Any) -> list[str]:
        """Frames for a client that connects."""
        frames: list[str] = []
        for feature in self._greeting:
            try:
                with in_hook(f"{feature.name}.greet"):
                    frames += checked("greet", feature.greet(connection))
            except Exception as error:  # noqa: BLE001 - logged there
                self._report(feature, "greet", error)
        return frames

    async def close(self, within: float) -> None:
        """The agent goes to sleep. One that takes too long is left, beside the others."""
        # An instance that is started again brings its hooks again.
        while self._disposers:
            self._disposers.pop()()
        closing = self._overriding("on_close")
        await asyncio.gather(*(self._notify(f, "on_close", within) for f in closing))

    async def delete(self) -> None:
        """The agent is deleted."""
        for feature in self._overriding("on_delete"):
            await self._notify(feature, "on_delete", CLOSING)

    async def _notify(
        self, feature: Feature, moment: str, limit: float | None, into: Together | None = None
    ) -> bool:
        """Call a method whose failure changes nothing for the others: it is logged.

        In a task of its own, so that one that ignores its cancel keeps nobody waiting (DESIGN
        §8.16). What it writes goes `into` the caller's transaction, if there is one.
        """
        what = f"{feature.name}.{moment}"

        async def work() -> None:
            with nullcontext() if into is None else into.collecting():
                await call_hook(what, getattr(feature, moment))

        try:
            await run_apart(work(), name=what, limit=limit, owner=self._tasks)
        except Exception as error:  # noqa: BLE001 - logged there
            self._report(feature, moment, error)
            return False
        return True

    def _report(self, feature: Feature, moment: str, error: Exception) -> None:
        agent = self._agent
        about = {
            "agent": f"{agent.agent_class}/{agent.name}",
            "feature": feature.name,
            "hook": f"{feature.name}.{moment}",
        }
        log_failure(log, f"{moment} of the feature {feature.name!r}", error, about)

    def _overriding(self, method: str) -> list[Feature]:
        return [feature for feature in self._features if _overrides(feature, method)]


def _calls_of(
    feature: Feature, named: Mapping[str, Callable[..., Any]]
) -> Iterator[tuple[str, Callable[..., Any], str]]:
    """What clients may call, and whose it is; a marked method that is listed has that name only."""
    for name, call in named.items():
        yield name, call, _title(feature)
    for name, attribute in marks_of(type(feature)).calls.items():
        call = getattr(feature, attribute)
        if call not in named.values():
            yield name, call, f"`{attribute}` of {_title(feature)}"


def _refuse_hidden(new: OwnedRoute, before: Sequence[OwnedRoute], *, chats: bool) -> None:
    """A route that is never asked is a mistake; nobody would notice it."""
    path = new.route.path
    if chats and path == TRANSCRIPT:
        raise AgentDefinitionError(
            f"{new.route.methods} {path} of the feature {new.owner!r} would never be called: every "
            f"agent that chats answers {TRANSCRIPT} itself. Give the route another path."
        )
    for other in before:
        if hidden := hidden_methods(other.route, new.route):
            way_out = f"leave that feature out: `features = [Without({other.owner!r})]`"
            raise AgentDefinitionError(
                f"{', '.join(hidden)} {path} of the feature {new.owner!r} would never be called: "
                f"{other.route.path!r} of the feature {other.owner!r} comes first. Give the route "
                f"another path, or {'list it first' if other.owner == new.owner else way_out}."
            )


def _overrides(feature: Feature, method: str) -> bool:
    return getattr(type(feature), method) is not getattr(Feature, method)


def _title(feature: Feature) -> str:
    return f"the feature {feature.name!r}"


@contextmanager
def _named(feature: Feature, moment: str) -> Generator[None]:
    """What is raised inside says whose fault it is."""
    try:
        with in_hook(f"{feature.name}.{moment}"):
            yield
    except Exception as error:
        raise FeatureError(feature.name, moment, error) from error
