"""Agents inside a FastAPI application, for users who have logged in.

    TOKENS=sesame:ada uvicorn examples.fastapi_app:api

Everybody has agents of their own: Ada reaches `/chat/agents/assistant/ada` and, for further
conversations, `/chat/agents/assistant/ada.2`, but nobody else's. Browsers cannot send headers with
a WebSocket, so the token may also be in the query: `useAgent({ query: { token } })`.
"""

import os
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI, HTTPException
from fastapi.requests import HTTPConnection

from thinkwell import App, Principal, Think

# Who has which token, as `token:user,token:user`; a real application asks its database.
TOKENS = dict(pair.split(":") for pair in os.environ.get("TOKENS", "").split(",") if pair)


class Assistant(Think):
    model = "demo"

    def get_system_prompt(self) -> str:
        return f"You talk to {self.name.partition('.')[0]}. Answer briefly."


def user_of(request: HTTPConnection) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        token = request.query_params.get("token", "")
    return TOKENS.get(token)


def auth(request, route) -> Principal | None:
    user = user_of(request)
    if user is None or route.name.partition(".")[0] != user:
        return None
    return Principal(id=user)


agents = App(agents=[Assistant], auth=auth)


@asynccontextmanager
async def lifespan(api: FastAPI):
    async with agents:  # a mounted app is not told when the server starts and stops
        yield


api = FastAPI(lifespan=lifespan)


@api.get("/questions/{text}")
async def ask(text: str, user: str | None = Depends(user_of)) -> dict[str, str]:
    """Routes of the application use the same agents."""
    if user is None:
        raise HTTPException(401)
    result = await agents.agent(Assistant, user).run(text)
    return {"answer": result.text}


api.mount("/chat", agents)
