"""What a provider said instead of an answer, as a `ModelError` (pure)."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from thinkwell.core.errors import ModelError

BODY_LIMIT = 2_000
"""Characters of a provider's text that an error keeps."""
RETRYABLE_STATUSES = frozenset({408, 409, 429})
_WRONG_KEY = re.compile(r"(incorrect|invalid|wrong|missing) (x-)?api[ _-]?key", re.IGNORECASE)
_WRONG_MODEL = re.compile(
    r"(invalid|unknown|no such|not a valid) model|model[^.]{0,80}?(not (found|exist|valid)\b"
    r"|does not exist|doesn't exist)|model_not_found|deploymentnotfound|api deployment",
    re.IGNORECASE,
)
_RETRYABLE_KINDS = frozenset(
    {
        *("server_error", "internal_error", "api_error", "timeout", "timeout_error"),
        *("rate_limit_exceeded", "rate_limit_error", "overloaded_error", "overloaded"),
        *("server_is_overloaded", "slow_down"),
    }
)


class UnreachableError(ConnectionError):
    """No connection could be made."""


def is_retryable(status: int | None) -> bool:
    """Whether the same request may succeed later."""
    return status is not None and (status in RETRYABLE_STATUSES or status >= 500)


def stream_error(provider: str, error: Any) -> ModelError:
    """The error object a provider sent instead of an answer, or in the middle of one."""
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    code = fields.get("code")
    status = code if isinstance(code, int) else None
    kinds = {str(code), str(fields.get("type"))}
    return ModelError(
        f"{provider} reported an error: {fields.get('message') or fields}",
        provider=provider,
        status=status,
        body=msgspec.json.encode(error).decode()[:BODY_LIMIT],
        code=str(code or fields.get("type") or ""),
        retryable=is_retryable(status) or bool(kinds & _RETRYABLE_KINDS),
    )


def unreadable(provider: str, payload: bytes, error: Exception) -> ModelError:
    """The error for a piece of the stream that is not what the protocol says."""
    return ModelError(
        f"{provider} sent a chunk that cannot be read: {error}",
        provider=provider,
        body=payload[:BODY_LIMIT].decode(errors="replace"),
    )


def endless(provider: str, error: ValueError) -> ModelError:
    """The error for a stream that would fill the memory. Asking again would bring the same."""
    return ModelError(f"{provider} sent {error}.", provider=provider, retryable=False)


def cut_stream(provider: str, *, empty: bool) -> ModelError:
    """The error for a stream that ended before the answer did."""
    text = (
        f"{provider} answered with an empty stream."
        if empty
        else f"The stream from {provider} ended in the middle of the answer."
    )
    return ModelError(text, provider=provider, retryable=True, cut=True)


def refusal_hint(provider: str, status: int, names: tuple[str, str], text: str) -> str:
    """What to set, where a refusal is about the set-up; empty otherwise.

    `names` are the variables of the key and of the address; empty where an argument was given.
    Statuses tell less than they should: xAI has 400 for a wrong key, Mistral and DeepSeek for a
    wrong model.
    """
    key_variable, url_variable = names
    said = text[:BODY_LIMIT]
    if status in (401, 403) or (status == 400 and _WRONG_KEY.search(said)):
        where = f"{key_variable} or api_key=..." if key_variable else "api_key=..."
        return f"Check the key: {where}."
    wrong_model = _WRONG_MODEL.search(said) is not None
    # At 404, a model that is not there has a body that says so; a wrong address mostly has a page.
    if (wrong_model and status in (400, 404, 422)) or (status == 404 and "model" in said.lower()):
        what = "deployment" if provider == "azure" else "model"
        return f'Check the name of the {what}, after "{provider}:".'
    if status in (404, 405):
        where = f"{url_variable} or base_url=..." if url_variable else "base_url=..."
        return f"Check the address: {where}."
    return ""
