"""The harness's side: start subjects and the provider, give orders, end everything."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]


class Worker:
    """A subject process that takes orders."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.subjects.{module}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def order(self, scenario: str, **fields: Any) -> dict[str, float]:
        """Have one scenario run and return its cost."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"scenario": scenario, **fields}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the subject ended with code {self._process.wait()}")
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Listener:
    """A process that prints the address it listens on: the mock provider, or a server."""

    def __init__(self, command: Sequence[str], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.port = self._read_port()

    def _read_port(self) -> int:
        assert self.process.stdout is not None
        seen: list[str] = []
        for line in self.process.stdout:
            seen.append(line)
            if found := re.search(r"(?:^|127\.0\.0\.1:)(\d+)", line):
                return int(found[1])
        raise RuntimeError("the process ended before it listened:\n" + "".join(seen))

    def __enter__(self) -> Self:
        return self

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __exit__(self, *failure: object) -> None:
        self.process.terminate()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
