"""`python -m benchmarks`: measure everything, print the table, write RESULTS.md."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import history_costs, hook_costs, import_seconds, turn_costs
from benchmarks.over_socket import socket_cost
from benchmarks.processes import Worker
from benchmarks.provider import start_provider, start_tool_provider
from benchmarks.report import (
    Row,
    document,
    history_rows,
    hook_rows,
    import_rows,
    socket_row,
    table,
    turn_rows,
)

# `import thinkwell` loads names on first use; the second line is what defining an agent needs.
IMPORTS = {
    "import": "import thinkwell",
    "agent": "from thinkwell import App, Think, tool",
    "peer": "import pydantic_ai",
}
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    """Run all scenarios, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder))
    RESULTS.write_text(document(rows))
    print(table(rows))


def measure(folder: Path) -> list[Row]:
    """Every row of the table."""
    with start_provider() as provider, start_tool_provider() as tool_provider:
        rows = measure_turns(provider.base_url, tool_provider.base_url, folder)
        rows.append(socket_row(socket_cost(provider.base_url, folder)))
    return rows + import_rows(import_seconds(IMPORTS))


def measure_turns(base_url: str, tool_url: str, folder: Path) -> list[Row]:
    """Turns in process, ours beside the peer's, then ours on top of histories."""
    with (
        ours(base_url, folder / "turns.db") as plain,
        ours(tool_url, folder / "tools.db") as with_tool,
        Worker("peer", "--base-url", base_url) as peer,
        Worker("peer", "--base-url", tool_url) as peer_with_tool,
    ):
        costs = turn_costs(
            {"thinkwell": plain, "pydantic-ai": peer},
            {"thinkwell": with_tool, "pydantic-ai": peer_with_tool},
        )
        hooks = hook_rows(hook_costs(plain))
        return turn_rows(*costs) + hooks + history_rows(history_costs(plain))


def ours(base_url: str, database: Path) -> Worker:
    """Our subject, with a database of its own."""
    return Worker("ours", "--base-url", base_url, "--store", f"sqlite:///{database}")


if __name__ == "__main__":
    main()
