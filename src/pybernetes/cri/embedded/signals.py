"""Signals by the names that images and requests have for them."""

from __future__ import annotations

import signal


def signal_number(name: str) -> int:
    """`SIGTERM`, `TERM`, `15` or `SIGRTMIN+3` as a number; what is none of them is TERM."""
    if name.isdecimal():
        return int(name)
    name = "SIG" + name.upper().removeprefix("SIG").replace("PLUS", "+").replace("MINUS", "-")
    for base in ("SIGRTMIN", "SIGRTMAX"):
        offset = name.removeprefix(base)
        if name.startswith(base) and (not offset or offset[1:].isdecimal()):
            return int(getattr(signal, base)) + int(offset or 0)
    return int(getattr(signal, name, signal.SIGTERM))
