"""Durable calls of an agent's own methods, outside its turns: `agent.jobs`, and its desk."""
