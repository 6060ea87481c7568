"""The harness's side: start subjects, servers and the provider, give orders, end everything."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

ROOT = Path(__file__).resolve().parents[1]
START_TIMEOUT = 60.0


class Worker:
    """A process of ours that takes orders."""

    def __init__(self, module: str, *arguments: str, python: str = sys.executable) -> None:
        self._process = subprocess.Popen(
            [python, "-m", f"benchmarks.{module}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def order(self, scenario: str, **fields: Any) -> dict[str, Any]:
        """Have one scenario run and return its cost."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"scenario": scenario, **fields}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the subject ended with code {self._process.wait()}")
        cost = json.loads(answer)
        if problem := cost.get("error"):
            raise RuntimeError(problem)
        return cost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Listener:
    """A process that listens on a port of loopback: the mock provider, or a server.

    `{port}` in the command becomes a free port. What the process prints is kept for the case that
    it ends before it listens.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.port = free_port()
        # A file, not a pipe: nobody reads it, and a full pipe would stop the process.
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __exit__
        self.process = subprocess.Popen(
            [part.format(port=self.port) for part in command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait_until_it_listens()
        except BaseException:
            self.__exit__()
            raise

    @property
    def pid(self) -> int:
        """The process."""
        return self.process.pid

    @property
    def address(self) -> str:
        """`http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"{self.address}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._output.close()

    def _wait_until_it_listens(self) -> None:
        until = time.monotonic() + START_TIMEOUT
        while self.process.poll() is None and time.monotonic() < until:
            if self._listens():
                return
            time.sleep(0.05)
        self._output.seek(0)
        raise RuntimeError(f"the server did not start: {self._output.read()[-1500:]}")

    def _listens(self) -> bool:
        """Whether this very process has the port: another one may have taken it meanwhile."""
        try:
            found = psutil.Process(self.pid).net_connections("tcp")
        except psutil.Error:
            return False
        return any(
            each.status == psutil.CONN_LISTEN and each.laddr[1] == self.port for each in found
        )


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
