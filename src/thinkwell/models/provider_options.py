"""`provider_options`: what a provider has beyond our settings, checked by name (pure)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.spelling import did_you_mean, nearest
from thinkwell.models.base import ModelRequest

EXTRA_BODY = "extra_body"
"""Holds fields that are sent as they are, unchecked: what is newer than our list."""


def given_options(
    request: ModelRequest, names: Sequence[str], known: Collection[str], *, strict: bool = True
) -> dict[str, Any]:
    """The options under the provider's names, the last one winning, with `extra_body` unfolded.

    Raises `ConfigurationError` for a name that the provider does not have. Servers that only
    speak a provider's protocol have more of their own: there (not `strict`) only a near miss of a
    known name is refused.
    """
    if not request.provider_options:
        return {}
    found: dict[str, Any] = {}
    for name in names:
        found.update(request.provider_options.get(name) or {})
    extra = cast("dict[str, Any]", found.pop(EXTRA_BODY, None) or {})
    for name in found:
        if name not in known and (strict or nearest(name, known)):
            provider = names[-1]
            raise ConfigurationError(
                f"provider_options[{provider!r}] has {name!r}, which {provider} does not have."
                f"{did_you_mean(name, known)} To send it all the same, write "
                f'{{"{EXTRA_BODY}": {{{name!r}: ...}}}}.'
            )
    return {**found, **extra}
