"""`make live`: the model contract against every provider whose key is in the environment.

Says first who is asked, and who is not and why. Without any key it asks nobody, and that is no
failure. Arguments go to pytest: `python -m tests.live -k Groq`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.live.providers import Live, Skipped, look_around, variable_of

SUITE = Path(__file__).with_name("suite.py")


def main(arguments: list[str]) -> int:
    """The exit status."""
    found = look_around()
    live = [each for each in found if isinstance(each, Live)]
    skipped = [each for each in found if isinstance(each, Skipped)]
    for each in live:
        variable = variable_of(each.provider)
        say(f"asked    {each.provider}:{each.model} (another model: {variable}=NAME)")
    for each in skipped:
        say(f"skipped  {each.provider}: {each.reason}")
    if not live:
        say("No provider was asked: set a key and run it again.")
        return 0
    command = [sys.executable, "-m", "pytest", str(SUITE), "-q", "--tb=short", *arguments]
    return subprocess.run(command, check=False).returncode


def say(line: str) -> None:
    """One line, before pytest says its own."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
