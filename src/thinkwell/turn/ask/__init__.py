"""Somebody asks: what becomes a turn, what answers one, what clears them away."""
