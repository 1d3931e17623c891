"""Holds a shutdown of the machine up until the node's pods have ended.

logind lets programs delay a shutdown: an inhibitor lock is a file descriptor, and closing it lets go. When logind says
that it prepares for a shutdown, the pods are ended and then the lock is closed; when it says that it does not after
all, a new lock is taken. logind waits only as long as its configuration allows: if that is too short, a file in
`logind.conf.d` asks for more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from pathlib import Path
from typing import Final

from pybernetes.client.clock import Clock

from ..node.shutdown import ShutdownManager
from . import wire
from .bus import SYSTEM_BUS, Bus, BusError

LOGIND: Final = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
SYSTEMD: Final = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
PREPARE: Final = "PrepareForShutdown"
CONFIG: Final = Path("/etc/systemd/logind.conf.d/99-kubelet.conf")
RECONNECT_SECONDS: Final = 1.0
SIGHUP: Final = 1
log = logging.getLogger(__name__)


class LogindWatch:
    """Tells a `ShutdownManager` of shutdowns that logind announces."""

    def __init__(
        self, manager: ShutdownManager, clock: Clock, *, path: Path = SYSTEM_BUS, config: Path = CONFIG
    ) -> None:
        self._manager, self._clock, self._path, self._config = manager, clock, path, config
        self._lock = -1

    async def run(self) -> None:
        """Listen until cancelled; where there is no bus or no graceful shutdown is wanted, not at all."""
        if not self._manager.enabled or not self._path.exists():
            return
        while True:
            try:
                await self._listen()
            except (OSError, TimeoutError, BusError, wire.WireError) as error:
                log.info("unable to watch the node for shutdown events: %s", error)
            await self._clock.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        """One connection, until it breaks."""
        bus = await Bus.connect(self._path)
        events: asyncio.Queue[bool | None] = asyncio.Queue()

        def arrived(message: wire.Message) -> None:
            if message.fields.get("member") == PREPARE and message.body and isinstance(message.body[0], bool):
                events.put_nowait(message.body[0])

        bus.on_message = arrived
        gone = asyncio.create_task(self._tell_end(bus, events))
        try:
            rule = f"type='signal',interface='{LOGIND[2]}',member='{PREPARE}',path='{LOGIND[1]}'"
            await bus.listen(rule)  # before the lock: who holds one hears of every shutdown
            await self._allow_time(bus)
            await self._take_lock(bus)
            while (preparing := await events.get()) is not None:
                if preparing:
                    await self._manager.shut_down()
                    self._release()
                else:
                    self._manager.cancel()
                    await self._take_lock(bus)
        finally:
            gone.cancel()
            self._release()
            bus.close()

    @staticmethod
    async def _tell_end(bus: Bus, events: asyncio.Queue[bool | None]) -> None:
        await bus.closed.wait()
        events.put_nowait(None)

    async def _allow_time(self, bus: Bus) -> None:
        """Let logind wait as long as we need."""
        wanted = self._manager.total
        if await self._delay(bus) >= wanted:
            return
        self._config.parent.mkdir(parents=True, exist_ok=True)
        self._config.write_text(f"# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={wanted}\n")
        await bus.call(*SYSTEMD, "KillUnit", "ssi", "systemd-logind.service", "all", SIGHUP)
        for attempt in range(5):  # logind reads its configuration when it comes to it
            if await self._delay(bus) >= wanted:
                return
            await self._clock.sleep(0.1 * 2**attempt)
        found = await self._delay(bus)
        raise BusError(f"logind does not wait longer than {found} s for a shutdown of {wanted} s")

    async def _delay(self, bus: Bus) -> float:
        """Seconds that logind waits for who holds a lock."""
        (value,) = await bus.call(
            *LOGIND[:2], "org.freedesktop.DBus.Properties", "Get", "ss", LOGIND[2], "InhibitDelayMaxUSec"
        )
        return float(value) / 1e6

    async def _take_lock(self, bus: Bus) -> None:
        words = ("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay")
        (lock,) = await bus.call(*LOGIND, "Inhibit", "ssss", *words)
        self._release()
        self._lock = lock

    def _release(self) -> None:
        if self._lock >= 0:
            with contextlib.suppress(OSError):
                os.close(self._lock)
            self._lock = -1
