"""The site in a process of its own, which a test kills with `kill -9` and starts again.

The store stays, and so does the address the browser knows: the relay's. The agents and their model
are those of the crash tests: a question says what will be answered, and where the model waits.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.browser.hooks.place import Place
from tests.browser.hooks.site import OpenTab, Site
from tests.browser.hooks.tab import AnyTab
from tests.crash.process import ROOT, Server, World


class SiteProcess(Server):
    """One process that serves the site."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "")
        self._folder = world.folder

    async def spawn(self) -> asyncio.subprocess.Process:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        changes = {"PYTHONPATH": paths, "THINKWELL_TEST_FOLDER": str(self._folder)}
        with (self._folder / "stderr.txt").open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.browser.hooks.serve",
                env={**os.environ, **changes},
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        return self._process


class KillableSite(Site[AnyTab]):
    """A site whose server dies and comes back while pages look at it."""

    def __init__(self, open_tab: OpenTab[AnyTab], place: Place, folder: Path) -> None:
        super().__init__(open_tab, place)
        self.world = World(folder)
        self.stack.push_async_callback(self.world.end)

    async def serve(self) -> None:
        server = SiteProcess(self.world)
        self.world.servers.append(server)
        await server.start()
        self.relay.target = server.url

    async def kill(self) -> None:
        """`kill -9`; the pages see their sockets break."""
        await self.world.servers[-1].kill()
