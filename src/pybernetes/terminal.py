"""Text of objects on a terminal: what would steer it is shown and does nothing (CVE-2021-25743)."""

from __future__ import annotations


def escaped(text: str) -> str:
    """The text with the beginnings of escape sequences, and returns to the beginning of a line, in visible letters."""
    if "\x1b" not in text and "\r" not in text:
        return text
    return text.replace("\x1b", "^[").replace("\r", "\\r")
