"""What the abused server serves: a chat agent with tools, state and methods for clients.

Its model needs no script: it looks at the last question and answers at once, so that any number of
turns can run. A question that begins with `call:NAME` makes it call that tool.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from thinkwell import App, Principal, Think, ToolContext, rpc, tool
from thinkwell.core.limits import Limits
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.models.base import ModelRequest
from thinkwell.testing import ScriptedModel
from thinkwell.testing.scripted import Piece, call

STEPS = 4


class Victim(Think):
    """Answers everybody."""

    initial_state = {"count": 0}
    max_steps = STEPS

    def get_model(self) -> ScriptedModel:
        return ScriptedModel([_answer] * STEPS)

    @tool
    async def look(self, ctx: ToolContext) -> str:
        """Runs at once."""
        return "seen"

    @tool(needs_approval=True)
    async def pay(self, ctx: ToolContext) -> str:
        """Waits for somebody's leave."""
        return "paid"

    @rpc
    def echo(self, value: Any) -> Any:
        """What it was given."""
        return value

    @rpc
    async def count(self, to: int) -> AsyncIterator[int]:
        """A few numbers, one by one."""
        for number in range(min(to, 3)):
            yield number

    @rpc
    def watchers(self) -> int:
        """How many sockets it has."""
        return len(list(self.get_connections()))


def _answer(request: ModelRequest) -> str | Sequence[Piece]:
    last: Any = request.messages[-1] if request.messages else None
    if isinstance(last, UserMessage):
        said = "".join(part.text for part in last.content if isinstance(part, TextContent))
        if said.startswith("call:"):
            return [call(said.removeprefix("call:")[:20] or "look", {})]
        if said.startswith("long:"):
            return "word " * int(said.removeprefix("long:")[:6])
    return "ok"


def who(request: Any, route: Any) -> Principal | None:
    """Everybody may use the conversation of their own name, with their own token."""
    token = request.query_params.get("token") or request.headers.get("authorization", "")
    user = token.removeprefix("token-")
    return Principal(id=user) if user and user == route.name else None


app = App(agents=[Victim])
strict = App(agents=[Victim], max_frame_bytes=65_536, max_body_bytes=65_536)
impatient = App(agents=[Victim], limits=Limits(read_seconds=0.5))
private = App(agents=[Victim], auth=who)
