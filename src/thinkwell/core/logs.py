"""Log lines as JSON that say for which agent, turn, job and principal the code was working.

The fields come from the task that logs, so a line that a tool or a hook writes to its own logger
has them too.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from thinkwell.core import json
from thinkwell.core.user_code import log_fields

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and every field that was given."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        said: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **log_fields.get(),
            **{name: _plain(value) for name, value in vars(record).items() if name not in _USUAL},
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said)


def log_as_json(stream: Any = None) -> None:
    """Have everything that is logged at `INFO` and above written as JSON lines."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


def _plain(value: Any) -> Any:
    try:
        return json.to_jsonable(value)
    except ValueError:
        return repr(value)
