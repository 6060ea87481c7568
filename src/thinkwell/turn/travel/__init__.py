"""Time travel: a turn told, exported, replayed and forked, from its journal alone."""
