"""pydantic-ai behind its Vercel AI adapter and uvicorn: POST a message, read an SSE stream.

It stores nothing and is sent no history; the last part of the path names the model.
"""

from __future__ import annotations

import os
import sys

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

agents: dict[str, Agent] = {}


def agent_for(model: str) -> Agent:
    """The agent of one model, made once."""
    if model not in agents:
        provider = OpenAIProvider(base_url=os.environ["OPENAI_BASE_URL"], api_key="none")
        agents[model] = Agent(
            OpenAIChatModel(model, provider=provider), system_prompt="You are a careful assistant."
        )
    return agents[model]


async def chat(request: Request) -> Response:
    """One turn."""
    agent = agent_for(request.path_params["model"])
    return await VercelAIAdapter.dispatch_request(request, agent=agent)


app = Starlette(routes=[Route("/chat/{model}", chat, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
