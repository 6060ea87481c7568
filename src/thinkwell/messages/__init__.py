"""UI messages, parts, chunks and what can be done with them, without any I/O."""
