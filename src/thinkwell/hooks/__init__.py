"""The moments of a turn: what a hook is given, what it may answer, who is called in which order."""
