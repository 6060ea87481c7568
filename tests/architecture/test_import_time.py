"""DESIGN §7: heavy libraries wait for their first use. Structural, so it cannot be flaky."""

from __future__ import annotations

import pytest

from tests.architecture.support import run_python

HEAVY = [
    "aiohttp",
    "click",
    "openai",
    "pydantic",
    "pydantic_ai",
    "rich",
    "starlette",
    "uvicorn",
    "websockets",
]


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """What is loaded after every public name of every public module has been touched."""
    return set(
        run_python(
            "import sys, thinkwell\n"
            "for name in thinkwell.__all__: getattr(thinkwell, name)\n"
            "for door in thinkwell._MODULES:\n"
            "    module = getattr(thinkwell, door)\n"
            "    for name in module.__all__: getattr(module, name)\n"
            "print(*sys.modules)"
        ).split()
    )


@pytest.mark.parametrize("library", HEAVY)
def test_importing_thinkwell_does_not_load(library: str, loaded: set[str]):
    assert library not in loaded


def test_importing_thinkwell_alone_loads_no_layer():
    loaded = run_python("import sys, thinkwell; print(*sys.modules)").split()
    assert [name for name in loaded if name.startswith("thinkwell.")] == []


def test_defining_an_agent_with_a_tool_loads_no_server_and_no_provider():
    loaded = run_python(
        "import sys\n"
        "from thinkwell import Think, tool\n"
        "class A(Think):\n"
        "    @tool\n"
        "    async def add(self, a: int) -> int:\n"
        "        'Add one.'\n"
        "        return a + 1\n"
        "print(*sys.modules)"
    ).split()
    assert {"aiohttp", "starlette", "uvicorn", "pydantic_ai", "rich", "click"} & set(
        loaded
    ) == set()
