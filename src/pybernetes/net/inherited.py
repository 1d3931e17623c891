"""A listening socket that whoever started this process has made for it, as systemd hands them over (LISTEN_FDS).

The cluster's supervisor does so where a component lives in a network of its own and is asked from outside of it: a
socket belongs to the network it was made in, whoever accepts on it.
"""

from __future__ import annotations

import os
import socket

FIRST = 3
"""The first descriptor after stdin, stdout and stderr."""
VARIABLE = "LISTEN_FDS"


def listener() -> socket.socket | None:
    """The socket, None if there is none; it can be taken once, and children do not get it."""
    if os.environ.pop(VARIABLE, "") != "1":
        return None
    os.set_inheritable(FIRST, False)
    found = socket.socket(fileno=FIRST)
    found.setblocking(False)
    return found
