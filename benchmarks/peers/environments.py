"""The peers and their virtual environments, made on demand under `benchmarks/.venvs`.

An environment is made once per list of pinned versions and kept; `make clean` or a changed list
makes it anew. A peer whose environment cannot be made is reported, not left out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venvs"
INSTALL_TIMEOUT = 900.0


class PeerUnavailableError(Exception):
    """The peer cannot be measured here; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """Another product that can be put behind the same provider."""

    name: str
    package: str
    """Whose version is shown."""
    how: str
    """How it was run, for the notes below the table."""
    arguments: tuple[str, ...]
    """The command, its first word a program of the environment."""

    @property
    def folder(self) -> Path:
        """Its virtual environment."""
        return ENVIRONMENTS / self.name

    @property
    def requirements(self) -> Path:
        """Its pinned versions."""
        return HERE / f"{self.name}.txt"

    @property
    def command(self) -> list[str]:
        """What starts its server."""
        program, *rest = self.arguments
        return [str(self.folder / "bin" / program), *rest]

    @property
    def version(self) -> str:
        """The pinned version of the package."""
        for line in self.requirements.read_text().splitlines():
            name, _, version = line.partition("==")
            if name.partition("[")[0] == self.package:
                return version
        raise LookupError(f"{self.requirements} does not pin {self.package}")


PEERS = (
    Peer(
        name="chainlit",
        package="chainlit",
        how="`chainlit run` with the OpenAI client, driven over socket.io; it stores nothing; it "
        "runs on the loop uvicorn chooses, uvloop",
        arguments=(
            *("chainlit", "run", str(HERE / "chainlit_app.py")),
            *("--headless", "--host", "127.0.0.1", "--port", "{port}"),
        ),
    ),
    Peer(
        name="agno",
        package="agno",
        how="AgentOS with a SQLite file, driven over its SSE runs; it stores finished runs, each "
        "commit synced to the disk; it runs on the loop uvicorn chooses, uvloop",
        arguments=("python", str(HERE / "agno_app.py"), "{port}"),
    ),
    Peer(
        name="pydantic-ai",
        package="pydantic-ai-slim",
        how="its Vercel AI adapter on uvicorn with uvloop, driven over SSE; it stores nothing",
        arguments=("python", str(HERE / "pydantic_ai_app.py"), "{port}"),
    ),
)

LIBRARY = Peer(
    name="strands",
    package="strands-agents",
    how="`Agent.stream_async` with its OpenAI model in process, on uvloop; it stores nothing",
    arguments=("python",),
)
"""Measured in process, beside pydantic-ai, which the tests install anyway."""


def prepare(peer: Peer) -> None:
    """Make the peer's environment unless it is there with the versions the list names."""
    wanted = peer.requirements.read_text()
    stamp = peer.folder / "installed.txt"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    ENVIRONMENTS.mkdir(exist_ok=True)
    (ENVIRONMENTS / ".gitignore").write_text("*\n")
    shutil.rmtree(peer.folder, ignore_errors=True)
    print(f"making the virtual environment of {peer.name} ...", file=sys.stderr, flush=True)
    venv.create(peer.folder, with_pip=True)
    _install(peer)
    stamp.write_text(wanted)


def _install(peer: Peer) -> None:
    command = [str(peer.folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "-r"]
    try:
        subprocess.run(
            [*command, str(peer.requirements)],
            capture_output=True,
            text=True,
            check=True,
            timeout=INSTALL_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailableError("its packages took longer than 15 minutes") from error
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.startswith("ERROR")]
        why = lines[-1] if lines else "no reason given"
        raise PeerUnavailableError(f"its packages could not be installed ({why})") from error
