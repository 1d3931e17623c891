"""Finds programs of the system whatever PATH is: some are in folders that only root's has."""

from __future__ import annotations

import os

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(name: str) -> str | None:
    """The path of a program, None if it is not installed."""
    for folder in PATH.split(":"):
        path = f"{folder}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
