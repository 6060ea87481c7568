"""The session of an agent: its message tree and the window of it that a model reads."""
