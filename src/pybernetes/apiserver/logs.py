"""How log lines look: text for people, or JSON as upstream's `--logging-format=json` writes it, one object a line."""

from __future__ import annotations

import logging

import msgspec

from pybernetes.component import klog


class JSONFormatter(logging.Formatter):
    """`ts` is in milliseconds; errors have no verbosity, as upstream's."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"ts": record.created * 1000, "caller": f"{record.filename}:{record.lineno}", "msg": record.getMessage()}
        if record.levelno < logging.ERROR:
            line["v"] = klog.verbosity_of(record.levelno)
        line |= {key: str(value) for key, value in getattr(record, "values", {}).items()}
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_to_stderr(verbosity: int, form: str) -> None:
    """Begin to log, in one of the two forms."""
    klog.to_stderr(verbosity)
    if form == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JSONFormatter())
