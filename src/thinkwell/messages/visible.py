"""What clients may see of a stored message (pure).

A turn that hides its reasoning (`send_reasoning=False`) still stores it, marked `hidden`, because
the model needs it later. Every view of the transcript that leaves the server goes through here.
"""

from __future__ import annotations

from thinkwell.core import json
from thinkwell.messages.message import UIMessage, with_parts

# Our own encoder writes no spaces, so the text can be searched without decoding it.
_MARK = '"hidden":true'


def visible_message(message: UIMessage) -> UIMessage:
    """The message without its hidden parts; itself if it has none."""
    shown = [part for part in message["parts"] if part.get("hidden") is not True]
    return message if len(shown) == len(message["parts"]) else with_parts(message, shown)


def visible_text(encoded: str) -> str:
    """The same for an encoded message, decoded only if something may be hidden in it."""
    return json.dumps(visible_message(json.loads(encoded))) if _MARK in encoded else encoded
