"""`python -m thinkwell.testing.chaos.child FOLDER APP`: one life of the app under test.

The real command line serves the user's app, unchanged but for three things: its store is a scratch
file, its tools are written down (`effects.py`), and in a scripted run its models are replaced.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STORE = "chaos.db"
FACTS = "app.json"


def serve(folder: Path, app: str) -> None:
    """Serve until somebody ends the process."""
    from thinkwell.cli.main import main
    from thinkwell.testing.chaos.effects import EffectLog, watch_tools

    watch_tools(EffectLog(folder, int(os.environ["THINKWELL_CHAOS_LIFE"])))
    _describe_app(folder)
    seed = os.environ.get("THINKWELL_CHAOS_SCRIPT")
    if seed is not None:
        _replace_models(int(seed))
    store = f"sqlite:///{(folder / STORE).absolute()}"
    main(["serve", app, "--port", "0", "--store", store])


def _describe_app(folder: Path) -> None:
    """Tell the run which agents the app serves, as soon as it starts."""
    from thinkwell.agent.think import Think
    from thinkwell.server.app import App

    start = App.start

    async def start_described(self: App) -> None:
        agents = zip(self.agent_names, self.agents, strict=True)
        chats = [name for name, agent in agents if issubclass(agent, Think)]
        facts = {"prefix": self.prefix, "chats": chats, "auth": self.auth is not None}
        (folder / FACTS).write_text(json.dumps(facts))
        await start(self)

    App.start = start_described


def _replace_models(seed: int) -> None:
    """Whatever a class, a hook or a fallback chain names, the scripted model answers."""
    from thinkwell.agent.think import Think
    from thinkwell.models.resolve import ModelPool
    from thinkwell.server.app import App
    from thinkwell.testing.chaos.model import ChaosModel

    model = ChaosModel(seed)

    def get_model(self: Any) -> ChaosModel:  # noqa: ARG001 - as the method it stands for
        return model

    def resolve(self: ModelPool, like: Any) -> ChaosModel:  # noqa: ARG001 - the same
        return model

    async def load(self: ModelPool, like: Any) -> ChaosModel:  # noqa: ARG001 - the same
        return model

    ModelPool.resolve, ModelPool.load = resolve, load
    start = App.start

    async def start_scripted(self: App) -> None:
        # An override of theirs may need a key to make its model.
        for agent in self.agents:
            if issubclass(agent, Think):
                agent.get_model = get_model
        await start(self)

    App.start = start_scripted


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
