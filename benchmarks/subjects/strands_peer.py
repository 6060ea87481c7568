"""Another peer in process: strands' `Agent.stream_async` with its OpenAI model.

Nothing is stored. Runs in an environment of its own (see `peers/environments`).
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
from typing import Any

import uvloop
from strands import Agent, tool
from strands.models.openai import OpenAIModel

from benchmarks.worker import serve_orders


@tool
def get_weather(city: str) -> str:
    """Current weather in a city."""
    return f"Sunny in {city}"


class Subject:
    """Runs turns of any model of the mock provider; one agent per model, made once."""

    def __init__(self, base_url: str) -> None:
        self._client = {"base_url": base_url, "api_key": "none"}
        self._agents: dict[str, Agent] = {}
        self.deltas = 0

    async def run_turn(self, order: dict[str, Any]) -> None:
        """One turn, every delta consumed."""
        agent = self._agents.get(order["model"])
        if agent is None:
            model = OpenAIModel(client_args=self._client, model_id=order["model"])
            agent = self._agents[order["model"]] = Agent(
                model=model,
                system_prompt="You are a careful assistant.",
                tools=[get_weather],
                callback_handler=None,
            )
        agent.messages.clear()  # the others begin a new conversation with every turn too
        async for event in agent.stream_async("hi"):
            self.deltas += "data" in event


async def main() -> None:
    """Take orders until the harness closes the pipe."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    await serve_orders(Subject(parser.parse_args().base_url).run_turn)


if __name__ == "__main__":
    uvloop.run(main())
