"""A turn ends: stored once, announced once, then its hooks."""
