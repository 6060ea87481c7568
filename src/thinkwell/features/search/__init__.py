"""Search over what was said: `Search`."""
