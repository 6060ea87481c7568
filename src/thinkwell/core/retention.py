"""How long rows are kept that nobody needs any more: `Retention`."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

import msgspec

from thinkwell.core.errors import ConfigurationError

Age: TypeAlias = timedelta | float | None
"""A length of time, or seconds; None: for ever."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long the records of finished work are kept. `None` keeps them for ever.

    Messages, state and stored values have no age: they stay until somebody deletes them. Whatever
    the ages say, nothing goes that something else still needs: work that has not ended, calls that
    wait for an answer, calls whose outcome is unknown, claims of `once` tools.
    """

    journals: Age = timedelta(days=7)
    """What each model call was sent and how it was answered. Goes with the prompts it names."""
    message_versions: Age = timedelta(days=7)
    """What a message said before it was changed. Journals refer to it: at least as long as those.
    """
    turns: Age = timedelta(days=30)
    """Options, inputs, errors and idempotency keys of ended turns. Who asked, which messages belong
    to it, its times and its usage stay as long as one of these messages is stored.
    """
    tool_calls: Age = timedelta(days=30)
    """Settled calls in the ledger. Of a `once` tool the claim stays, without input and result."""
    jobs: Age = timedelta(days=7)
    """Jobs that are done, failed or cancelled, with their keys."""
    decisions: Age = timedelta(days=365)
    """Who approved, denied or answered which call, what they were asked, and revoked rules."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not _is_age(getattr(self, name)):
                raise ConfigurationError(
                    f"Retention({name}={getattr(self, name)!r}) is no age. Give a timedelta such "
                    f"as `{name}=timedelta(days=30)`, seconds, or None to keep them for ever."
                )
        journals, versions = self.seconds("journals"), self.seconds("message_versions")
        if versions is not None and (journals is None or versions < journals):
            raise ConfigurationError(
                "Retention(message_versions=...) is shorter than journals: a journal that is "
                "still kept would refer to messages that are gone. Give message_versions at least "
                "the age of journals."
            )

    def seconds(self, name: str) -> float | None:
        """One of the ages in seconds; None: for ever."""
        age: Age = getattr(self, name)
        return age.total_seconds() if isinstance(age, timedelta) else age


def _is_age(value: object) -> bool:
    if value is None:
        return True
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0
