"""One turn from top to bottom. Start at `turn.py`: its outline names a file per phase."""
