"""`python -m tests.abuse.serve MODULE:APP STORE`: a server through the real command line."""

from __future__ import annotations

import sys

from thinkwell.cli.main import main

if __name__ == "__main__":
    main(["serve", sys.argv[1], "--port", "0", "--store", sys.argv[2]])
