"""Plain `useChat` over HTTP: ask, stop, join, go on (spec/01 §14)."""
