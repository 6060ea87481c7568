"""`run_sync` of an agent without a class: for code that is not async."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from thinkwell import create_agent
from thinkwell.core.errors import ConfigurationError, HostClosedError
from thinkwell.testing import ScriptedModel, call


class City(BaseModel):
    name: str


def test_a_script_gets_answers_and_the_conversation_goes_on():
    with create_agent(model=ScriptedModel(["one", "two"])) as agent:
        assert agent.run_sync("first").text == "one"
        assert agent.run_sync("second", max_steps=1).text == "two"
    with pytest.raises(HostClosedError, match="closed"):
        agent.run_sync("third")


def test_it_takes_what_run_takes():
    model = ScriptedModel([[call("final_answer", {"name": "Oslo"})]])
    with create_agent(model=ScriptedModel([])) as agent:
        assert agent.run_sync("which?", output=City, model=model).output.name == "Oslo"


async def test_inside_a_running_loop_the_text_says_what_to_write():
    agent = create_agent(model=ScriptedModel([]))
    with pytest.raises(ConfigurationError, match=r"Write `await agent.run\(\.\.\.\)`"):
        agent.run_sync("hi")
    with pytest.raises(ConfigurationError, match="Write `async with agent:`"), agent:
        pass


def test_an_agent_stays_in_the_loop_it_began_in():
    with create_agent(model=ScriptedModel(["one", "two"])) as agent:
        agent.run_sync("hi")
        with pytest.raises(ConfigurationError, match="another event loop"):
            asyncio.run(agent.run("hi"))
        assert agent.run_sync("hi").text == "two"


def test_it_is_closed_in_the_loop_it_began_in_and_nothing_is_left_behind():
    agent = create_agent(model=ScriptedModel(["one", "two"]))
    agent.run_sync("hi")
    with pytest.raises(ConfigurationError, match="another event loop"):
        asyncio.run(agent.close())
    assert agent.run_sync("hi").text == "two"
    with agent:
        pass
    asyncio.run(agent.close())  # closed already: there is nothing to do


SCRIPT = """
import sys
from thinkwell import create_agent
from thinkwell.testing import ScriptedModel

agent = create_agent(model=ScriptedModel(["hello"]), store=f"sqlite:///{sys.argv[1]}")
print(agent.run_sync("hi").text, len(agent._sync.run(agent.get_messages())))
"""


def test_a_script_may_end_without_closing_it_and_all_is_stored(tmp_path: Path):
    for messages in (2, 4):
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", SCRIPT, str(tmp_path / "a.db")],
            capture_output=True,
            text=True,
            check=False,
        )
        slow = "Executing <"  # what the development mode says of a busy machine
        said = [line for line in done.stderr.splitlines() if not line.startswith(slow)]
        assert (done.returncode, done.stdout, said) == (0, f"hello {messages}\n", [])
