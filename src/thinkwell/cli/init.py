"""`thinkwell init`: a project to begin with. An agent, a test of it, how to run both.

Nothing that exists is touched: if one file of the project is there already, none is written. The
texts are below as they are written; `{name}` is the name of the project.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

FILES = {
    "agent.py": '''"""An agent: `thinkwell dev agent.py` opens it in the browser."""

from thinkwell import App, Think, tool


class Assistant(Think):
    # "demo" needs no key. A real one: "openai:gpt-5-mini" with OPENAI_API_KEY set,
    # "anthropic:claude-sonnet-4-5" with ANTHROPIC_API_KEY, or "ollama:...".
    model = "demo"
    system_prompt = "You are a careful assistant. Say so when you do not know."

    @tool(effect="pure")
    async def get_weather(self, city: str) -> str:
        """The weather in a city now.

        Args:
            city: The name of the city.
        """
        return f"Sunny in {city}."


app = App(agents=[Assistant])
''',
    "test_agent.py": '''"""Tests of the agent: `pytest`. The model says what a test wrote down."""

import asyncio

from thinkwell import App
from thinkwell.testing import ScriptedModel, call

from agent import Assistant


async def ask(question, model):
    async with App(agents=[Assistant], store="sqlite://:memory:") as app:
        result = await app.agent(Assistant, "alice").run(question, model=model)
        return result.raise_for_status()


def test_the_assistant_looks_at_the_weather():
    model = ScriptedModel([[call("get_weather", {"city": "Oslo"})], "Sunny it is."])
    result = asyncio.run(ask("How is Oslo?", model))
    assert result.text == "Sunny it is."
    assert result.message is not None
    outputs = [part["output"] for part in result.message["parts"] if "output" in part]
    assert outputs == ["Sunny in Oslo."]
    model.assert_complete()  # asked as often as the script says, and no more
''',
    "pyproject.toml": """[project]
name = "{name}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["thinkwell"]

[project.optional-dependencies]
dev = ["pytest"]

[tool.setuptools]
py-modules = ["agent"]

[tool.pytest.ini_options]
pythonpath = ["."]
""",
    "README.md": """# {name}

```sh
python -m venv .venv && . .venv/bin/activate
pip install -e '.[dev]'

thinkwell dev agent.py     # the page in the browser; starts again when you save
thinkwell chat agent.py    # the same agent in this terminal
thinkwell serve agent.py   # for others: page, WebSocket and HTTP
pytest                     # the tests
```

`agent.py` is the agent. Everything it stores is in `.thinkwell/`; `thinkwell agents list` and
`thinkwell turns list` look into it.
""",
    ".gitignore": """.thinkwell/
.venv/
__pycache__/
""",
}


def make_project(folder: Path) -> None:
    """Write the files of a new project. Raises `click.ClickException` if it cannot."""
    if folder.exists() and not folder.is_dir():
        raise click.ClickException(f"{folder} is a file. Name a folder.")
    taken = [name for name in FILES if (folder / name).exists() or (folder / name).is_symlink()]
    if taken:
        raise click.ClickException(
            f"{folder} has {', '.join(taken)} already, and nothing is overwritten. Name another "
            f"folder: `thinkwell init {folder.name}-2`."
        )
    name = project_name(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in FILES.items():
        # "x": what came there meanwhile is not overwritten either.
        with (folder / file).open("x", encoding="utf-8") as written:
            written.write(text.replace("{name}", name))
    _tell(folder)


def project_name(folder: Path) -> str:
    """The name of the folder, as packages may be called."""
    name = re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.lower()).strip("-._")
    return name or "my-agent"


def _tell(folder: Path) -> None:
    here = folder.resolve() == Path.cwd().resolve()
    for file in FILES:
        click.echo(f"  {file if here else folder / file}")
    click.echo("\nTry it:\n")
    if not here:
        click.echo(f"  cd {folder}")
    click.echo("  thinkwell dev agent.py     # in the browser, no key needed")
    click.echo("  thinkwell chat agent.py    # in this terminal")
    click.echo("  pytest                     # its test (pip install pytest)")
