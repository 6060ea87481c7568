"""What a user names on the command line → an `App`.

`module:attribute` is imported; a file is run as a module. The app of a file is the attribute named
behind it (`file.py:attribute`), its `app`, or the only `App` it has, whatever its name. A file
without any serves every agent class it defines itself (imported ones do not count). A folder serves
the agent classes of the files in its `agents/`.

An `App` that somebody wrote is never passed over in silence: its `auth` would be passed over too.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import click

from thinkwell.cli.mistakes import loading
from thinkwell.server.app import App

if TYPE_CHECKING:
    from thinkwell.turn.travel.story import PriceFunction


def load_app(path: str, *, store: str | None = None) -> App:
    """The app in `path`. Raises `click.ClickException` that says what to write instead."""
    with loading(path):
        app = _load(path)
    if store is not None:
        app.store = store
    return app


def load_price(path: str | None) -> PriceFunction | None:
    """The function that says what model calls cost: `module:function`, or one of a file."""
    if path is None:
        return None
    place, name = split_target(path)
    with loading(path):
        file = Path(place)
        module = _run_file(file) if file.suffix == ".py" else _import(place)
    function = getattr(module, name or "price", None)
    if not callable(function):
        raise click.ClickException(
            f"{path} is no function. Write one: `def price(provider, model, usage): return 0.0`."
        )
    return cast("PriceFunction", function)


def split_target(path: str) -> tuple[str, str | None]:
    """A file, a folder or a module, and the attribute that is named behind it."""
    if Path(path).exists():  # a colon may be part of a file's name
        return path, None
    place, _, attribute = path.partition(":")
    return place, attribute or None


def _load(path: str) -> App:
    place, attribute = split_target(path)
    file = Path(place)
    if file.is_dir():
        return _app_of_folder(file)
    if file.suffix == ".py" or file.exists():
        return _app_of(_run_file(file), place, attribute)
    return _app_of(_import(place), place, attribute or "app")


def _app_of(module: ModuleType, place: str, attribute: str | None) -> App:
    found = getattr(module, attribute or "app", None)
    if isinstance(found, App):
        return found
    apps = _apps(module)
    if attribute is not None or found is not None:
        what = "is missing" if found is None else f"is a {type(found).__name__}"
        write = f"Write `{attribute or 'app'} = App(agents=[...])` in that module."
        raise click.ClickException(
            f"{place}:{attribute or 'app'} {what}. {_choice(place, apps) if apps else write}"
        )
    if len(apps) > 1:
        raise click.ClickException(f"Which app do you mean? {_choice(place, apps)}")
    if apps:
        return next(iter(apps.values()))
    agents = _agent_classes(module)
    if not agents:
        raise click.ClickException(
            f"{module.__file__} defines no agent. "
            "Write `class Assistant(Think): ...` or `app = App(agents=[...])` in it."
        )
    return App(agents=agents)


def _apps(module: ModuleType) -> dict[str, App]:
    """The apps of a module by name; an app with several names by its last."""
    found = {id(value): name for name, value in vars(module).items() if isinstance(value, App)}
    return {name: getattr(module, name) for name in found.values()}


def _choice(place: str, apps: Iterable[str]) -> str:
    ways = " or ".join(f"`{place}:{name}`" for name in apps)
    return f"Write {ways}, or call it `app`."


def _app_of_folder(folder: Path) -> App:
    files = sorted((folder / "agents").glob("*.py"))
    if not files:
        raise click.ClickException(
            f"{folder} has no agents/ with Python files in it. "
            f"Write `class Assistant(Think): ...` into {folder / 'agents' / 'assistant.py'}."
        )
    package = _package(folder / "agents")
    names = {f"{package}.{file.stem}": file for file in files if file.stem != "__init__"}
    modules = {importlib.import_module(name): file for name, file in names.items()}
    for module, file in modules.items():
        for name in _apps(module):
            raise click.ClickException(
                f"{file} has an App, {name}, and a folder is served with an app of its own. "
                f"Name it: `{file}:{name}`."
            )
    agents = [cls for module in modules for cls in _agent_classes(module)]
    if not agents:
        raise click.ClickException(
            f"The files in {folder / 'agents'} define no agent. "
            "Write `class Assistant(Think): ...` in one of them."
        )
    return App(agents=agents)


def _package(folder: Path) -> str:
    """Make a folder importable under its name, even if an installed package has that name."""
    name = folder.name
    init = folder / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        name, init if init.is_file() else None, submodule_search_locations=[str(folder.resolve())]
    )
    if spec is None:  # a folder without __init__.py
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder.resolve())]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(folder.resolve().parent))
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return name


def _agent_classes(module: ModuleType) -> list[type]:
    from thinkwell.agent.agent import Agent

    def is_agent(value: Any) -> bool:
        return isinstance(value, type) and issubclass(value, Agent)

    members = vars(module).values()
    return [cls for cls in members if is_agent(cls) and cls.__module__ == module.__name__]


def _run_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise click.ClickException(
            f"There is no file {file}. Name a Python file, a folder with agents/, or a module as "
            "`package.module:app`."
        )
    name = file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise click.ClickException(f"{file} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.resolve().parent))
    spec.loader.exec_module(module)
    return module


def _import(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise click.ClickException(
            f"There is no module {error.name!r} and no such file. "
            "Name a Python file, or a module as `package.module:app`."
        ) from error
