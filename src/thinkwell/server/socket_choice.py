"""Which WebSocket implementation of uvicorn serves: ours, where it was tested, else uvicorn's own.

`joined_socket.py` reaches into uvicorn and websockets. With versions it was not tested with, a
change in there could garble frames; uvicorn's own class then writes them one by one.
"""

from __future__ import annotations

import logging
import re
from importlib.metadata import version
from typing import Any

log = logging.getLogger("thinkwell.server")

TESTED = {"uvicorn": ((0, 54), (0, 55)), "websockets": ((17, 0), (18, 0))}
"""From this version of each to below that one."""


def websocket_class() -> Any:
    """What `uvicorn.Config(ws=...)` takes."""
    installed = {name: version(name) for name in TESTED}
    if not all(is_tested(name, text) for name, text in installed.items()):
        log.info("frames are written one by one: untested versions %s", installed)
        return "auto"
    from thinkwell.server.joined_socket import JoinedWebSocket

    return JoinedWebSocket


def is_tested(name: str, text: str) -> bool:
    """Whether frames were joined with that version of a package in the tests."""
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        return False
    first, beyond = TESTED[name]
    return first <= (int(found[1]), int(found[2])) < beyond
