"""DESIGN §3: imports only go down the layers, checked by import-linter."""

from __future__ import annotations

from tests.architecture.support import MODULES, PACKAGE, run_tool

UNLAYERED = {"testing"}
AGENT_FILES = 20
LAYERS = {
    "cli",
    "server",
    "host",
    "agent",
    "features",
    "live",
    "turn",
    "hooks",
    "session",
    "journal",
    "tools",
    "models",
    "store",
    "wire",
    "messages",
    "core",
}


def test_every_import_goes_down_the_layers():
    done = run_tool("lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_folder_of_the_package_is_a_layer():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders - UNLAYERED == LAYERS


def test_only_the_front_doors_lie_beside_the_layers():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    # The plugin stands alone: pytest imports it in every project, with nothing else of ours.
    doors = {f"{name}.py" for name in {"__init__", "pytest_plugin", *MODULES} - folders}
    assert {path.name for path in PACKAGE.glob("*.py")} == doors


def test_the_classes_users_subclass_stay_few():
    """What an agent can beside its turns is a feature, and what a turn does is in `turn/`."""
    assert len([*(PACKAGE / "agent").rglob("*.py")]) <= AGENT_FILES
