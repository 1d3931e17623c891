"""How log lines look: text for people, or JSON as upstream's `--logging-format=json` writes it, one object a line."""

from __future__ import annotations

import logging
import sys

import msgspec

from .log_level import level_of

_TEXT = "%(asctime)s %(levelname).1s %(name)s: %(message)s"


class JSONFormatter(logging.Formatter):
    """`ts` is in milliseconds; errors have no verbosity, as upstream's."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"ts": record.created * 1000, "caller": f"{record.filename}:{record.lineno}", "msg": record.getMessage()}
        if record.levelno < logging.ERROR:
            line["v"] = 0 if record.levelno >= logging.WARNING else 2 if record.levelno >= logging.INFO else 4
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_to_stderr(verbosity: int, form: str) -> None:
    """Begin to log, in one of the two forms."""
    logging.basicConfig(level=level_of(verbosity), format=_TEXT, stream=sys.stderr)
    if form == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JSONFormatter())
