"""Server-sent events as bytes: socket chunks in, `data:` payloads out.

Owns line splitting over chunk borders (a UTF-8 character cut in two is safe, because bytes are only
split at line ends), CRLF, comments and keep-alives. It leaves decoding to the caller. Providers put
each event's JSON on one line, so every `data:` line is one payload. This is the hot path: work is
done per socket chunk, not per line, wherever possible.
"""

from __future__ import annotations

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one line. A line without an end would be kept until the memory is full."""


class EndlessLineError(ValueError):
    """A line that has become longer than any event is."""


class SsePayloads:
    """Cuts one event stream into its `data:` payloads."""

    __slots__ = ("_held", "_pending")

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads completed by this chunk, in order. Raises `EndlessLineError`."""
        if b"\n" not in chunk:
            # One huge line may come in many chunks; joining once keeps that linear.
            self._pending.append(chunk)
            self._held += len(chunk)
            if self._held > LONGEST_LINE:
                raise EndlessLineError(f"a line longer than {LONGEST_LINE:,} bytes")
            return []
        self._held = 0
        if self._pending:
            self._pending.append(chunk)
            chunk = b"".join(self._pending)
            self._pending.clear()
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if rest:
            self._pending.append(rest)
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]

    def flush(self) -> list[bytes]:
        """The last payload of a stream that ended without a line end."""
        return self.feed(b"\n") if self._pending else []
