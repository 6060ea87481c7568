"""Under which code a turn was accepted: the app's version, and what stands for prompt and tools.

Stored with every turn, so the text is made once per class and process. The prompt and the tools of
each model call, which hooks may change, are in the journal by their hashes.
"""

from __future__ import annotations

import msgspec

from thinkwell.core import json


class CodeVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a turn's row says about the code. Stored format: fields may only be added."""

    app: str | None = None
    """The version of the app, as `App(version=...)` or its installation says."""
    prompt: str | None = None
    """The fingerprint of the class's system prompt; None if a method makes it for each turn."""
    tools: str | None = None
    """The fingerprint of the class's own tools: their names and input schemas."""

    def __str__(self) -> str:
        """For people."""
        named = self.app or "no version"
        tools = "" if self.tools is None else f", tools {self.tools[:8]}"
        prompt = "" if self.prompt is None else f", prompt {self.prompt[:8]}"
        return f"{named}{tools}{prompt}"

    def encode(self) -> str:
        """The text on the row."""
        return json.dumps(self)


def read_code(text: str | None) -> CodeVersion | None:
    """What a row says; None for a turn of an earlier release."""
    return None if text is None else msgspec.convert(json.loads(text), CodeVersion)
