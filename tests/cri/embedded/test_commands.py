"""Commands of probes and hooks, with a launcher that only writes."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from pybernetes.cri.embedded.commands import LARGEST, Commands


class Launcher:
    """Starts commands that write so many zeros to stdout."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.written = 0
        self.commands: Commands | None = None

    async def exec(self, name: str, spec: Any, changes: Any, streams: Sequence[int]) -> Any:
        threading.Thread(target=self._write, args=(os.dup(streams[1]), asyncio.get_running_loop(), name)).start()
        return {"descriptors": []}

    def _write(self, descriptor: int, loop: asyncio.AbstractEventLoop, name: str) -> None:
        try:
            while self.written < self.size:
                self.written += os.write(descriptor, bytes(1 << 16))
        finally:
            os.close(descriptor)
        assert self.commands is not None
        loop.call_soon_threadsafe(self.commands.ended, {"name": name, "code": 0})

    def forget(self, name: str) -> None: ...


def _commands(launcher: Launcher) -> Commands:
    containers = SimpleNamespace(get=lambda id: SimpleNamespace(running=True), spec=lambda id: {})
    launcher.commands = Commands(cast(Any, launcher), cast(Any, containers))
    return launcher.commands


async def test_output_beyond_the_size_of_a_message_is_dropped() -> None:
    answer = await _commands(Launcher(20 << 20)).run("box", ["head", "-c", "20M", "/dev/zero"], 60)
    assert (len(answer.stdout), answer.stderr, answer.exit_code) == (LARGEST, b"", 0)
    assert answer.ByteSize() < 16 << 20
