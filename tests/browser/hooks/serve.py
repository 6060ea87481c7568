"""`python -m tests.browser.hooks.serve`: the site with the agents of the crash tests.

The folder in THINKWELL_TEST_FOLDER holds the store. The first line says where the site is.
"""

from __future__ import annotations

import asyncio
import sys

from tests.browser.hooks.site import around
from tests.crash import agents
from tests.wire.serving import serving
from thinkwell import App


async def main() -> None:
    app = App(agents=agents.app.agents, store=f"sqlite:///{agents.FOLDER / 'site.db'}")
    async with serving(around(app)) as url, app:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
