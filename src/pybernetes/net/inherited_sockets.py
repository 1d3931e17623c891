"""Listening sockets that the parent process made, as systemd hands them over (LISTEN_FDS).

The cluster's supervisor does so where a component lives in a network of its own and is asked from outside of it: a
socket belongs to the network it was made in, in whichever process it is accepted on.
"""

from __future__ import annotations

import os
import socket

FIRST = 3
"""The first descriptor after stdin, stdout and stderr."""
VARIABLE = "LISTEN_FDS"


def listeners() -> list[socket.socket]:
    """The sockets; they can be taken once, and children do not get them."""
    count = os.environ.pop(VARIABLE, "")
    found = []
    for number in range(FIRST, FIRST + int(count) if count.isdecimal() else FIRST):
        os.set_inheritable(number, False)
        made = socket.socket(fileno=number)
        made.setblocking(False)
        found.append(made)
    return found


def listener() -> socket.socket | None:
    """The socket of a program that has one; None if there is none."""
    found = listeners()
    return found[0] if found else None
