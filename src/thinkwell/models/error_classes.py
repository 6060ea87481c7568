"""What kind of error a model call ended with (pure).

Providers say the same thing in many words. `_SIGNS` holds the words, first match wins; where none
fits, the HTTP status decides. `tests/unit/models/test_error_classes.py` has a sample of each
provider. What the classes are good for: `context_overflow` compacts, `rate_limit` and `transient`
are tried again, the others are not, because the same request would fail the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from thinkwell.core.errors import ConfigurationError, ModelError

ErrorClass: TypeAlias = Literal[
    "context_overflow",
    "rate_limit",
    "transient",
    "auth",
    "invalid_request",
    "content_filter",
    "quota",
    "fatal",
    "unknown",
]

_WORDS: Final[tuple[tuple[ErrorClass, tuple[str, ...]], ...]] = (
    (
        "context_overflow",
        (
            r"context[ _]length[ _]exceeded",
            r"maximum (context|prompt) length",
            r"prompt is too long",
            r"reduce the length of",
            r"exceeds the maximum number of tokens",
            r"input token count",
            r"input is too long",
            r"too many (input )?tokens",
            r"context window",
            r"available context size",
            r"input length and .?max_tokens.? exceed",
            r"request_too_large",
            r"string_above_max_length",
        ),
    ),
    (
        "quota",
        (
            r"insufficient[_ ](quota|balance|credits)",
            r"exceeded your current quota",
            r"billing_(hard_limit|not_active)",
            r"credit balance is too low",
            r"requires more credits",
            r"payment required",
        ),
    ),
    (
        "content_filter",
        (
            r"content[_ ](filter|policy|management policy)",
            r"flagged (as|by|for)",
            r"responsible ?ai",
            r"blocked by .{0,20}(safety|guardrail)",
        ),
    ),
    (
        "auth",
        (
            r"invalid[_ ](api[_ ]?key|x-api-key)",
            r"incorrect api key",
            r"authentication_error",
            r"permission_(error|denied)",
            r"unauthorized",
        ),
    ),
    ("rate_limit", (r"rate[_ ]?limit", r"too many requests", r"resource_exhausted")),
    ("transient", (r"overloaded", r"server_error", r"temporarily unavailable", r"try again")),
)
_SIGNS: Final[tuple[tuple[ErrorClass, re.Pattern[str]], ...]] = tuple(
    (kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _WORDS
)
_BY_STATUS: Final[dict[int, ErrorClass]] = {
    400: "invalid_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "invalid_request",
    405: "invalid_request",
    413: "context_overflow",
    415: "invalid_request",
    422: "invalid_request",
    429: "rate_limit",
}
_PASSING: Final[frozenset[ErrorClass]] = frozenset({"rate_limit", "transient"})


def default_error_classifier(error: BaseException) -> ErrorClass:
    """What kind of error `error` is, as far as its type, status, code and words tell.

    Call it from `classify_chat_error` for everything you do not know better.
    """
    if isinstance(error, ConfigurationError):
        return "fatal"
    for each in _chain(error):
        kind = _by_words(each)
        if kind is not None:
            return kind
    return _by_kind(error)


def default_context_overflow_classifier(error: BaseException) -> Literal["context_overflow"] | None:
    """`"context_overflow"` if the conversation was too long for the model; None otherwise."""
    return "context_overflow" if default_error_classifier(error) == "context_overflow" else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from: libraries wrap what the provider said."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__


def _by_words(error: BaseException) -> ErrorClass | None:
    said = str(error)
    retryable = True
    if isinstance(error, ModelError):
        said = f"{error.code}\n{said}\n{error.body}"
        # What the adapter knows will fail again is not made passing by a word in its text.
        retryable = error.retryable or error.status is None
    for kind, words in _SIGNS:
        if words.search(said) and (retryable or kind not in _PASSING):
            return kind
    return None


def _by_kind(error: BaseException) -> ErrorClass:
    if not isinstance(error, ModelError):
        return "unknown"
    if error.status in _BY_STATUS:
        return _BY_STATUS[error.status]
    return "transient" if error.retryable or error.cut else "unknown"
