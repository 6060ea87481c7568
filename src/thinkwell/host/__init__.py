"""The process part that keeps agents awake, and the one way to reach it."""
