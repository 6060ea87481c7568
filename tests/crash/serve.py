"""`python -m tests.crash.serve STORE`: the server under test, through the real command line."""

from __future__ import annotations

import sys

from thinkwell.cli.main import main

if __name__ == "__main__":
    main(["serve", "tests.crash.agents:app", "--port", "0", "--store", f"sqlite:///{sys.argv[1]}"])
