"""A small web site with our app mounted inside it, and the tabs that look at it.

The site serves the bare pages of `dist` and has the app below `/inside`, so every test also shows
that a mounted app works. The browser reaches it through a relay. What answers there is up to the
fixture: `ScriptedSite` for a model that says what the test wrote down, `killable.py` for a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tests.browser import agents
from tests.browser.hooks.place import Place
from tests.browser.hooks.relay import Relay
from tests.browser.hooks.tab import AnyTab, Tab
from tests.wire.serving import serving
from thinkwell import App
from thinkwell.testing import ScriptedModel

DIST = Path(__file__).parent / "dist"
INSIDE = "/inside"


AnyTabT = TypeVar("AnyTabT", bound=AnyTab)
OpenTab = Callable[[str, str], Awaitable[AnyTabT]]
"""Opens one of the bundles at an address."""


class Site(Generic[AnyTabT]):
    """The clients' side of one test: a relay, and tabs."""

    def __init__(self, open_tab: OpenTab[AnyTabT], place: Place) -> None:
        self._open_tab = open_tab
        self.place = place
        self.stack = AsyncExitStack()
        self.relay = Relay()
        self.relay.joins = place.joins
        self.tabs: list[AnyTabT] = []

    async def __aenter__(self) -> Self:
        await self.stack.enter_async_context(self.relay)
        await self.serve()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for tab in self.tabs:
                await tab.close()
            problems = [problem for tab in self.tabs for problem in tab.problems]
            assert not problems, problems
        finally:
            await self.stack.aclose()

    async def serve(self) -> None:
        """Start a server and point the relay at it."""
        raise NotImplementedError

    async def tab(self, bundle: str, **settings: str) -> AnyTabT:
        """A new tab with one of the bare pages, connected unless the relay holds sockets back."""
        query = urlencode({"prefix": f"{INSIDE.strip('/')}/agents", **settings})
        tab = await self._open_tab(bundle, f"{self.relay.url}/pages/{bundle}?{query}")
        self.tabs.append(tab)
        if self.relay.sockets_pass.is_set():
            await tab.connected()
        return tab

    async def lose_the_line(self) -> None:
        """Cut every connection, and wait until a page has asked for a new socket."""
        before = self.relay.sockets
        self.relay.cut()
        async with asyncio.timeout(30):
            while self.relay.sockets == before:
                await asyncio.sleep(0.01)

    async def everywhere(self, tab: AnyTabT, *bubbles: str) -> None:
        """The same bubbles and rest: in this tab, in a new one, and after a reload."""
        await tab.rests_with(*bubbles)
        other = await self.tab(tab.bundle)
        await other.rests_with(*bubbles)
        await other.close()
        await tab.rests_with(*bubbles)  # still: nothing came late
        await tab.reload()
        await tab.rests_with(*bubbles)


class AnyScriptedSite(Site[AnyTabT]):
    """The server runs in the loop of the test; its model says what the test wrote down."""

    def __init__(self, open_tab: OpenTab[AnyTabT], place: Place) -> None:
        super().__init__(open_tab, place)
        self.model = ScriptedModel()
        self.inside = agents.Inside()
        """What the agents of this test share with it."""

    async def serve(self) -> None:
        classes = agents.classes(self.model, self.inside)
        app = App(agents=classes, store="sqlite://:memory:")
        self.relay.target = await self.stack.enter_async_context(serving(around(app)))
        await self.stack.enter_async_context(app)

    async def turns_ended(self, count: int) -> None:
        """Wait until that many turns are over on the server."""
        async with asyncio.timeout(30), self.inside.changed:
            await self.inside.changed.wait_for(lambda: len(self.inside.ends) >= count)


AnySite = AnyScriptedSite[AnyTab]
"""Whatever its tabs run in."""


ScriptedSite = AnyScriptedSite[Tab]
"""In Chromium."""


def around(app: App) -> Starlette:
    """The site with `app` mounted in it."""
    return Starlette(
        routes=[
            Route("/pages/{bundle}", _page),
            Mount("/dist", StaticFiles(directory=DIST)),
            Mount(INSIDE, app),
        ]
    )


async def _page(request: Request) -> HTMLResponse:
    script = f'<script type="module" src="/dist/{request.path_params["bundle"]}.js"></script>'
    icon = '<link rel="icon" href="data:,">'
    return HTMLResponse(f'<!doctype html><title>page</title>{icon}<div id="root"></div>{script}')
