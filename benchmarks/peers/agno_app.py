"""agno's AgentOS with a SQLite file: POST a form to an agent's runs, read an SSE stream.

One agent per model; a session's runs are stored and given back to the model as history.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import os
import sys

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.openai.like import OpenAILike
from agno.os import AgentOS


def make_agent(model: str) -> Agent:
    """An agent that remembers its session."""
    return Agent(
        id=model,
        name=model,
        model=OpenAILike(id=model, base_url=os.environ["OPENAI_BASE_URL"], api_key="none"),
        db=SqliteDb(db_file=os.environ["BENCH_DATABASE"]),
        instructions="You are a careful assistant.",
        add_history_to_context=True,
        telemetry=False,
    )


agent_os = AgentOS(
    agents=[make_agent(model) for model in os.environ["BENCH_MODELS"].split(",")], telemetry=False
)
app = agent_os.get_app()

if __name__ == "__main__":
    agent_os.serve(app=app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False)
