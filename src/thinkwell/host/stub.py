"""A stand-in for one agent: looks like its class, calls go through the host.

Only public async methods cross, those of a namespace too (`stub.session.get_history()`); everything
else raises an `AttributeError` that says what to write instead. Nothing is contacted until a method
is called.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from thinkwell.core.spelling import did_you_mean
from thinkwell.hooks.former_names import hint
from thinkwell.host.client import AgentAddress, HostClient

_BLOCK = "storage.together"
"""What every agent has in a namespace and is no async method."""
_ITERATOR_NAMES = ("AsyncIterator", "AsyncGenerator", "AsyncIterable")


class AgentStub:
    """What `app.agent(cls, name)` returns."""

    def __init__(
        self,
        cls: type,
        address: AgentAddress,
        host: Callable[[], HostClient],
        *,
        features: Iterable[str] = (),
    ) -> None:
        self._cls = cls
        self._address = address
        self._host = host
        self._namespaces = {*namespaces_of(cls), *features}

    def __repr__(self) -> str:
        return f"<stub of {self._cls.__name__} {self._address.name!r}>"

    def __setattr__(self, member: str, value: Any) -> None:
        # It would stay on the stub: the agent, and every other stub of it, would never know.
        if not member.startswith("_"):
            name = self._cls.__name__
            raise AttributeError(
                f"`{member}` cannot be set from outside an agent. Give {name} an async method that "
                f"sets it, and call that."
            )
        super().__setattr__(member, value)

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        member = inspect.getattr_static(self._cls, method, None)
        if member is None and method in self._namespaces:
            return NamespaceStub(self._call, method)
        if member is None:
            known = [name for name in dir(self._cls) if not name.startswith("_")]
            near = self._sync_hint(method) or hint(method) or did_you_mean(method, known)
            raise AttributeError(f"{self._cls.__name__} has no method {method!r}.{near}")
        function = inspect.unwrap(member) if callable(member) else member
        if is_iterator(function):
            return self._iterator(method)
        if inspect.iscoroutinefunction(function):
            return self._call(method)
        raise AttributeError(self._explain(method))

    def _call(self, method: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._host().call(self._address, method, args, kwargs)

        call.__qualname__ = f"{self._cls.__name__}.{method}"  # read when an await was forgotten
        return call

    def _iterator(self, method: str) -> Callable[..., AsyncIterator[Any]]:
        def iterate(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            return self._host().iterate(self._address, method, args, kwargs)

        return iterate

    def _explain(self, member: str) -> str:
        name = self._cls.__name__
        if member == "add_hook":
            return (
                f"`{self._shown}.add_hook` does not work: an agent adds its hooks itself. Write "
                f"`async def on_start(self): self.add_hook(...)` in {name}, or "
                '`@hook("before_turn")` above one of its methods.'
            )
        function = inspect.getattr_static(self._cls, member)
        called, given, passed = f"read_{member}", "", ""
        if callable(function):
            called, (given, passed) = f"call_{member}", _passed_on(function)
        more = f", {given}" if given else ""
        return (
            f"`{self._shown}.{member}` does not work: only async methods can be called from "
            f"outside an agent. Add `async def {called}(self{more}): return self.{member}{passed}` "
            f"to {name} and write `await {self._shown}.{called}({given})`."
        )

    @property
    def _shown(self) -> str:
        return f'app.agent({self._cls.__name__}, "{self._address.name}")'

    def _sync_hint(self, method: str) -> str:
        """An agent without a class has `run_sync`, because nobody else may run it."""
        return f" Write `await {self._shown}.run(...)`." if method == "run_sync" else ""


def _passed_on(function: Callable[..., Any]) -> tuple[str, str]:
    """The parameters of a method as another one would name them, and as it would pass them on."""
    known = list(inspect.signature(inspect.unwrap(function)).parameters.values())
    parameters = known if isinstance(function, staticmethod) else known[1:]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = [stars.get(each.kind, "") + each.name for each in parameters]
    passed = [
        f"{each.name}={each.name}" if each.kind is inspect.Parameter.KEYWORD_ONLY else name
        for each, name in zip(parameters, given, strict=True)
    ]
    return ", ".join(given), f"({', '.join(passed)})"


class NamespaceStub:
    """A namespace of an agent, seen from outside: its public async methods."""

    def __init__(
        self,
        call: Callable[[str], Callable[..., Any]],
        name: str,
        block: Callable[[], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        self._call = call
        self._name = name
        self._block = block

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        path = f"{self._name}.{method}"
        if path == _BLOCK and self._block is not None:
            return self._block
        if path == _BLOCK:
            raise AttributeError(
                f"`{path}()` does not work from outside an agent: a block is one piece of code. "
                f"Put `async with self.{path}(): ...` into an async method of the agent and call "
                "that."
            )
        if self._name == "events":
            raise AttributeError(
                f"`{path}()` does not work from outside an agent. Write `app.events.{method}(fn, "
                '"hook:*", agent="class/name")`, or use `self.events` in the agent.'
            )
        return self._call(path)


def namespaces_of(cls: type) -> set[str]:
    """What an agent gets when it wakes: members that its class names without giving a value."""
    named = {name for base in cls.__mro__ for name in inspect.get_annotations(base)}
    return {name for name in named if not name.startswith("_") and not hasattr(cls, name)}


def is_iterator(function: Any) -> bool:
    """Whether calling it gives an async iterator: a generator, or annotated to return one."""
    if inspect.isasyncgenfunction(function):
        return True
    if inspect.iscoroutinefunction(function) or not inspect.isfunction(function):
        return False
    returns = str(function.__annotations__.get("return", ""))
    return any(name in returns for name in _ITERATOR_NAMES)
