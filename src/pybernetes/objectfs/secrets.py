"""Secrets that were given on the command line do not stay in the process list."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

FLAGS = ("--access-key", "--secret-key", "--session-token")
_ARGUMENTS_BEGIN = 47  # field 48 of /proc/PID/stat, from 0


def secrets_in(argv: list[str]) -> list[str]:
    """Passwords of URLs and values of secret flags."""
    found = []
    for place, word in enumerate(argv):
        flag, separator, value = word.partition("=")
        if flag in FLAGS:
            found.append(value if separator else argv[place + 1] if place + 1 < len(argv) else "")
        elif "://" in word:
            try:
                found.append(urlsplit(word).password or "")
            except ValueError:
                continue
    return [each for each in found if each]


def hide(argv: list[str]) -> None:
    """Overwrites the secrets in this process's own arguments, where `ps` reads them. Best effort: what the kernel
    does not let through stays, and before this line they could be seen; the environment has no such moment."""
    secrets = secrets_in(argv)
    if not secrets:
        return
    try:
        line = Path("/proc/self/cmdline").read_bytes()
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        begin = int(fields[_ARGUMENTS_BEGIN - 2])
        hidden = line
        for each in secrets:
            hidden = hidden.replace(os.fsencode(each), b"*" * len(os.fsencode(each)))
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(hidden)
    except (OSError, ValueError, IndexError):
        pass
