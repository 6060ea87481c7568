"""Who asks, and whether the app lets them: `auth`, then the app's own look at the request.

`auth` is asked first for every request and every socket of an agent, so that `on_before_request`
and `on_before_connect` know who it is (`request.state.principal`). Whatever these functions raise,
nobody gets in by it. To refuse, `auth` returns None; any of them may also raise Starlette's
`HTTPException`, which is answered as it says.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

import msgspec
from starlette.exceptions import HTTPException, WebSocketException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.principal import Principal
from thinkwell.core.user_code import call_user
from thinkwell.server.asgi import header_pairs
from thinkwell.server.routing import AgentRoute

log = logging.getLogger("thinkwell.server")

AuthAnswer: TypeAlias = Principal | str | None
Auth: TypeAlias = Callable[[HTTPConnection, AgentRoute], AuthAnswer | Awaitable[AuthAnswer]]
"""Says who asks. Contract: called for every request and socket; None refuses; may be async."""
HookAnswer: TypeAlias = HTTPConnection | Response | None
BeforeHook: TypeAlias = Callable[[Any, AgentRoute], HookAnswer | Awaitable[HookAnswer]]
"""Looks at a request before the agent does.

Contract: called after `auth`; None lets it pass, a request takes its place, a response answers it;
may be async.
"""


class Admitted(msgspec.Struct, frozen=True):
    """A request that may go to its agent."""

    request: HTTPConnection
    """The request to go on with."""
    principal: Principal | None


class Denied(msgspec.Struct, frozen=True):
    """A request that `auth` or a hook refused."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


Verdict: TypeAlias = Admitted | Denied | Response
"""What became of a request at the door. A response comes from a hook."""


class Access:
    """The app's functions that decide about requests."""

    def __init__(
        self,
        auth: Auth | None = None,
        *,
        before_connect: BeforeHook | None = None,
        before_request: BeforeHook | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._auth = auth
        self._clock = clock or SystemClock()
        self._before_connect = before_connect
        self._before_request = before_request

    @property
    def asks(self) -> bool:
        """Whether anybody is asked who they are."""
        return self._auth is not None

    async def judge(self, request: HTTPConnection, route: AgentRoute) -> Verdict:
        """Whether a request or socket may go to its agent. Raises what `auth` or a hook raises."""
        try:
            principal = await self.identify(request, route)
            if self._auth is not None and principal is None:
                return Denied(401, "Unauthorized")
            request.state.principal = principal
            return await self._ask_hook(request, route, principal)
        except HTTPException as refused:
            headers = header_pairs(refused.headers)
            return Denied(refused.status_code, refused.detail, headers)

    async def sees(self, request: HTTPConnection, route: AgentRoute) -> bool:
        """Whether that request would go to its agent: for lists, which show nothing else."""
        return isinstance(await self.judge(request, route), Admitted)

    async def still(self, request: HTTPConnection, route: AgentRoute) -> Principal | None:
        """Who that request comes from by now; None if `auth` refuses it."""
        try:
            return await self.identify(request, route)
        except (HTTPException, WebSocketException):
            return None

    async def identify(self, request: HTTPConnection, route: AgentRoute) -> Principal | None:
        """Who asks, as `auth` says; None refuses, unless there is no `auth`."""
        if self._auth is None:
            return None
        answer = await call_user("auth", self._auth, request, route)
        if answer is None or answer == "":  # an id that was looked for and not found
            return None
        if isinstance(answer, str):
            return Principal(id=answer)
        if isinstance(answer, Principal):
            return None if answer.id == "" or self._is_over(answer) else answer
        raise TypeError(
            f"auth() returned {type(answer).__name__}. Return a Principal, a user id as text, or "
            "None to refuse."
        )

    def _is_over(self, principal: Principal) -> bool:
        return principal.expires_at is not None and principal.expires_at <= self._clock.now()

    async def _ask_hook(
        self, request: HTTPConnection, route: AgentRoute, principal: Principal | None
    ) -> Verdict:
        plain = isinstance(request, Request)
        hook = self._before_request if plain else self._before_connect
        if hook is None:
            return Admitted(request, principal)
        answer = await call_user("a before-hook", hook, request, route)
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Admitted(request, principal)
        if isinstance(answer, Request if plain else HTTPConnection):
            return Admitted(cast("HTTPConnection", answer), principal)
        raise TypeError(
            f"a before-hook returned {type(answer).__name__}. Return None, a request or a response."
        )
