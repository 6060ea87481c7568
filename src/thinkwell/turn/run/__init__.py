"""A turn has the slot: its phases, in `turn.py` as an outline."""
