"""The peers as servers. Each file runs in a virtual environment of its own (see `environments`)."""
