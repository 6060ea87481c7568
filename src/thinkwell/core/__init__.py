"""The ground floor: errors, clock, ids, JSON, owned tasks, abort signals, the event bus."""
