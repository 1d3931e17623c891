"""Errors in the words that people know from Kubernetes: without Python's numbers and quotes."""

from __future__ import annotations


def why(error: BaseException) -> str:
    """The text of an error, in the form `/data: no such file or directory`."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}"
    return str(error) or type(error).__name__
