"""The node's event about a process that was killed because the node had no memory left."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from pybernetes.kubelet.node.oom_watcher import OOMWatcher

TOTAL = "total-vm:100kB, anon-rss:50kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0\n"


async def test_kills_of_the_whole_node_are_events_and_those_of_a_cgroup_are_not() -> None:
    found: list[tuple[str, str, str]] = []
    news = asyncio.Event()
    reading, writing = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)  # each write is read alone, like a record of the kernel

    def event(type: str, reason: str, message: str) -> None:
        found.append((type, reason, message))
        news.set()

    running = asyncio.create_task(OOMWatcher(event, Path(f"/proc/self/fd/{reading}")).run())
    try:
        for text in (
            f"3,1,1,-;Memory cgroup out of memory: Killed process 7 (small) {TOTAL}",
            "12,2,2,-;Out of memory: Killed process 8 (not from the kernel)\n",
            "6,2,2,-;usb 1\n SUBSYSTEM=x;Out of memory: Killed process 9 (not a message)\n",
            *(f"6,{number},3,-;eth0: link is up\n" for number in range(300)),
            f"3,4,4,-;Out of memory: Killed process 4242 (python3) {TOTAL}",
        ):
            await asyncio.to_thread(os.write, writing, text.encode())
        await asyncio.wait_for(news.wait(), 30)
        message = "System OOM encountered, victim process: python3, pid: 4242"
        assert found == [("Warning", "SystemOOM", message)]
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        os.close(writing)
        os.close(reading)


async def test_without_the_kernels_log_there_are_no_such_events(tmp_path: Path) -> None:
    await OOMWatcher(lambda *_: None, tmp_path / "none").run()
