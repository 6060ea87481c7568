"""The peer: pydantic-ai's `Agent.run_stream` with its OpenAI chat model; nothing is stored.

Deltas are taken as they come (`debounce_by=None`): with its default debouncing pydantic-ai would
hand out fewer, bigger pieces, which is another product.
"""

from __future__ import annotations

import argparse
from typing import Any

import uvloop
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.worker import serve_orders


def make_agent(model_id: str, base_url: str) -> Agent:
    """An agent of the same shape as ours: one system prompt, one tool."""
    provider = OpenAIProvider(base_url=base_url, api_key="none")
    agent = Agent(
        OpenAIChatModel(model_id, provider=provider), system_prompt="You are a careful assistant."
    )

    @agent.tool_plain
    async def get_weather(city: str) -> str:
        """Current weather in a city."""
        return f"Sunny in {city}"

    return agent


class Subject:
    """Runs turns of any model of the mock provider; one agent per model, made once."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._agents: dict[str, Agent] = {}
        self.deltas = 0

    async def run_turn(self, order: dict[str, Any]) -> None:
        """One turn, every delta consumed."""
        model_id = order["model"]
        agent = self._agents.get(model_id)
        if agent is None:
            agent = self._agents[model_id] = make_agent(model_id, self._base_url)
        async with agent.run_stream("hi") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                self.deltas += 1


async def main() -> None:
    """Take orders until the harness closes the pipe."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    await serve_orders(Subject(parser.parse_args().base_url).run_turn)


if __name__ == "__main__":
    uvloop.run(main())
