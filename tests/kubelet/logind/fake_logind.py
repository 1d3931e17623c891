"""A logind for tests: the calls that matter, on a bus of its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from pybernetes.kubelet.logind import wire
from pybernetes.kubelet.logind.bus import Bus
from pybernetes.kubelet.logind.watch import LOGIND, PREPARE, SYSTEMD


class FakeLogind:
    """Answers Inhibit with a lock whose end it sees, waits at most `delay` seconds, and can announce a shutdown."""

    def __init__(self, bus: Bus, config: Path) -> None:
        self.bus, self.config = bus, config
        self.delay = 5
        self.inhibitors: list[tuple[Any, ...]] = []
        self.locks: list[int] = []
        """Our ends of locks that were given out."""
        self.killed: list[tuple[Any, ...]] = []
        self.obedient = True
        self._tasks: set[asyncio.Task[None]] = set()
        bus.on_message = self._called

    @classmethod
    async def start(cls, path: Path, config: Path) -> FakeLogind:
        bus = await Bus.connect(path)
        logind = cls(bus, config)
        await bus.own(LOGIND[0])
        await bus.own(SYSTEMD[0])
        return logind

    def stop(self) -> None:
        self.bus.close()
        for lock in self.locks:
            os.close(lock)
        self.locks.clear()

    async def announce(self, preparing: bool) -> None:
        """PrepareForShutdown."""
        fields = {"path": LOGIND[1], "interface": LOGIND[2], "member": PREPARE}
        await self.bus.send(wire.Message(wire.SIGNAL, body=(preparing,), fields=fields), "b")

    def held(self) -> int:
        """How many locks are still held: reading from the others gives an end."""
        count = 0
        for lock in self.locks:
            try:
                count += os.read(lock, 1) != b""
            except BlockingIOError:
                count += 1
        return count

    def _called(self, message: wire.Message) -> None:
        if message.type == wire.METHOD_CALL:
            task = asyncio.create_task(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: wire.Message) -> None:
        member = message.fields["member"]
        fields = {"reply_to": message.serial, "destination": message.fields["sender"]}
        if member == "Get":
            reply = wire.Message(wire.METHOD_RETURN, body=(("t", self.delay * 10**6),), fields=fields)
            await self.bus.send(reply, "v")
        elif member == "Inhibit":
            self.inhibitors.append(message.body)
            mine, theirs = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self.locks.append(mine)
            await self.bus.send(wire.Message(wire.METHOD_RETURN, body=(0,), fields=fields, fds=[theirs]), "h")
            os.close(theirs)
        elif member == "KillUnit":
            self.killed.append(message.body)
            if self.obedient:
                self.delay = int(self.config.read_text().rpartition("=")[2])
            await self.bus.send(wire.Message(wire.METHOD_RETURN, fields=fields))
        else:
            fields["error"] = "org.freedesktop.DBus.Error.UnknownMethod"
            await self.bus.send(wire.Message(wire.ERROR, body=(f"no {member}",), fields=fields), "s")
