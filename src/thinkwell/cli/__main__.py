"""`python -m thinkwell.cli`: the same command where no script is installed."""

from thinkwell.cli.main import main

main()
