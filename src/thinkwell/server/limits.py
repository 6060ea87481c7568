"""How much a client may send at once, unless the app says otherwise."""

from __future__ import annotations

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Of one WebSocket message: a chat request carries the client's whole transcript."""
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Of one request's body."""
