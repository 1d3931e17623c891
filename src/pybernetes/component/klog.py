"""Log lines in klog's form: `I1118 16:55:22.123456    4242 kubelet.py:12] "SyncLoop ADD" source="api"`.

`info(log, verbosity, message, **values)` writes a structured line that is shown from `-v=VERBOSITY` on. Python's levels
carry the verbosity: plain `log.info` is -v=2, `log.debug` is -v=4, warnings and errors are always shown. Values are
formatted only when the line is shown.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from typing import Any, Final

LEVELS: Final = (25, 24, logging.INFO, 19, logging.DEBUG, 9, 8, 7, 6, 5, 4)
"""Python's level for each verbosity."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but those that make lines and columns."""


def level_of(verbosity: int) -> int:
    """Python's level from which on lines are shown with a value of `-v`."""
    return LEVELS[max(0, min(verbosity, len(LEVELS) - 1))]


def verbosity_of(level: int) -> int:
    """The value of `-v` from which on lines of a level are shown."""
    return next((each for each, known in enumerate(LEVELS) if known <= level), len(LEVELS) - 1)


def info(log: logging.Logger, verbosity: int, message: str, /, **values: Any) -> None:
    """Write a structured line, if `-v` is at least `verbosity`."""
    level = level_of(verbosity)
    if log.isEnabledFor(level):
        log.log(level, message, extra={"values": values}, stacklevel=2)


def error(log: logging.Logger, err: object, message: str, /, **values: Any) -> None:
    """Write a structured line about an error, always shown."""
    log.error(message, extra={"values": {"err": err, **values}}, stacklevel=2)


class Formatter(logging.Formatter):
    """klog's text form. One record is one line, but for a traceback behind it."""

    def format(self, record: logging.LogRecord) -> str:
        letter = "I" if record.levelno < logging.WARNING else "W" if record.levelno < logging.ERROR else "E"
        if record.levelno >= logging.CRITICAL:
            letter = "F"
        moment = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        head = f"{letter}{moment}.{micros:06} {os.getpid():>7} {record.filename}:{record.lineno}] "
        values = getattr(record, "values", None)
        if values is None:
            line = head + record.getMessage().replace("\n", "\n\t")
        else:
            line = head + quoted(str(record.msg)) + "".join(f" {key}={value(each)}" for key, each in values.items())
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        # Text of users must not steer the terminal of who reads the log, nor make grep take it for binary.
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", line)


def value(found: Any) -> str:
    """A value as klog writes it: text quoted, numbers and booleans plain, lists and maps as JSON."""
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int | float):
        return str(found)
    if isinstance(found, list):
        return f"[{','.join(map(value, found))}]"
    if isinstance(found, dict):
        return json.dumps(found, ensure_ascii=False, default=str, separators=(",", ":"))
    return quoted("<nil>" if found is None else str(found))


def quoted(text: str) -> str:
    """A text in quotation marks on one line."""
    return json.dumps(text, ensure_ascii=False)


def to_stderr(verbosity: int) -> None:
    """Begin to log."""
    logging.basicConfig(level=level_of(verbosity), stream=sys.stderr)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(Formatter())
    logging.getLogger("asyncio").setLevel(max(logging.WARNING, level_of(verbosity)))
