"""What the forger attacks: a desk that staff and strangers share, with a tool that moves money.

Its model transfers only when it is asked to, so every other transfer was forged. Each transfer
leaves a line in the file that THINKWELL_TEST_FOLDER names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thinkwell import App, Principal, Think, ToolContext, tool
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.models.base import ModelRequest
from thinkwell.testing import ScriptedModel
from thinkwell.testing.scripted import Piece, call

STEPS = 4
SAID = "ok"
"""All that the model ever says."""
ASKED = {"transfer:5": ("transfer", {"amount": 5}), "where": ("locate", {})}
"""The questions after which it calls a tool."""
PEOPLE = {
    "token-ann": Principal(id="ann", claims={"role": "staff"}),
    "token-sam": Principal(id="sam", claims={"role": "stranger"}),
    "token-gus": Principal(id="gus", claims={"role": "guest"}),
}


class Bank(Think):
    """The desk. Guests may only look."""

    max_steps = STEPS

    def get_model(self) -> ScriptedModel:
        return ScriptedModel([_answer] * STEPS)

    @tool(needs_approval=True)
    async def transfer(self, amount: int, ctx: ToolContext) -> str:
        """Move money."""
        line = {"amount": amount, "principal": ctx.principal.id if ctx.principal else None}
        with Path(os.environ["THINKWELL_TEST_FOLDER"], "transfers.jsonl").open("a") as out:
            out.write(json.dumps(line) + "\n")
        return f"moved {amount}"

    def should_connection_be_readonly(self, connection: Any, request: Any) -> bool:
        return is_guest(connection.principal)

    def should_request_be_readonly(self, request: Any) -> bool:
        return is_guest(request.principal)


def is_guest(principal: Principal | None) -> bool:
    return principal is None or principal.claims.get("role") == "guest"


def _answer(request: ModelRequest) -> str | Sequence[Piece]:
    last: Any = request.messages[-1] if request.messages else None
    if isinstance(last, UserMessage):
        said = "".join(part.text for part in last.content if isinstance(part, TextContent))
        if said in ASKED:
            return [call(*ASKED[said])]
    return SAID


def who(request: Any, route: Any) -> Principal | None:
    """Everybody with a token may use the desk."""
    token = request.query_params.get("token") or request.headers.get("authorization", "")
    return PEOPLE.get(token)


app = App(agents=[Bank], auth=who)
