"""Restores what other programs remove from a node: a table of rules, an address.

Woken by the kernel's notifications about rules and, where asked for, about links' addresses; nothing is polled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

from pybernetes.network.nftables.client import Nftables

ADDRESSES = 0x10 | 0x100
"""Notifications about addresses of both IP versions."""
REPAIR_INTERVAL = 1.0
"""Seconds between two repairs: a program that changes the rules all the time must not make us do the same."""
log = logging.getLogger(__name__)


async def keep(
    what: str, held: Callable[[Nftables], bool], hold: Callable[[Nftables], None], *, groups: int = 0
) -> None:
    """Call `hold` now, and again whenever `held` says no, until cancelled. OSError if the kernel refuses it at the
    start. `groups`: of rtnetlink, whose notifications are followed too."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    with contextlib.ExitStack() as stack:
        nftables = stack.enter_context(Nftables())
        links = stack.enter_context(
            socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
            )
        )
        links.bind((0, groups))
        for watched in (nftables.watch(), links.fileno()):
            loop.add_reader(watched, changed.set)
            stack.callback(loop.remove_reader, watched)
        hold(nftables)
        while True:
            await changed.wait()
            changed.clear()
            _drain(links)
            nftables.changes()
            if not held(nftables):
                log.warning("%s was removed by another program, restored", what)
                hold(nftables)
                await asyncio.sleep(REPAIR_INTERVAL)


def _drain(notifications: socket.socket) -> None:
    while True:
        try:
            notifications.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:  # the kernel had no room for all of them: what matters is that there were some
            continue
