"""Turns wait for the agent's one slot, in order."""
