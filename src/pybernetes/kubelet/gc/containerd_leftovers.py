"""Removes what a containerd that was killed has left of pods it was just making or ending, and its successor forgot.

containerd's CRI part takes up again what it had written down. What it had begun a moment before is lost to it: a shim
with its processes and its bundle whose container is not known (any more), a network namespace that no sandbox has.
No other component removes them. What the runtime knows or is just making is never touched:
- A bundle (a container's folder) older than containerd's socket, or a shim that began before containerd did, is of an
  earlier one. If containerd knows no container of its id it is left over, because ids are never used again.
- A younger shim is left over if containerd does not know its id at two looks: a container is known before its shim is
  started, and one that has just been removed has had its time.
- A network namespace is left over if no sandbox has it, now and after all sandboxes that were being made now are made.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybernetes.client.clock import Clock
from pybernetes.component import offload
from pybernetes.component.removal import remove_tree
from pybernetes.cri import v1 as cri
from pybernetes.cri.containerd_containers import is_known
from pybernetes.cri.errors import CRIError
from pybernetes.cri.mounting import mounts, unmount
from pybernetes.cri.remote import Runtime

NAMESPACE = "k8s.io"
"""containerd's own namespace for what CRI makes; no Kubernetes namespace."""
TASKS = "io.containerd.runtime.v2.task"
SETTLING = 2.0
"""Seconds between the end of the last sandbox's making and the look at who has which network namespace."""
EVERY = 20.0
"""Seconds between two looks."""
LOOK_WITHIN = 30.0
DELETE_WITHIN = 60.0
"""Seconds for a shim's `delete`."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Places:
    """Where a containerd keeps things."""

    bundles: Path
    work: Path
    networks: Path


class Leftovers:
    """Finds and removes; must run in the namespaces of the containerd, as root."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._places: Places | None = None
        self._unknown: set[str] = set()
        """The shims without a known container at the last look."""
        self._networks: dict[str, str] = {}
        """The network namespace of each sandbox; it never changes."""

    async def run(self, clock: Clock) -> None:
        """Removes what is left over now and then, until cancelled."""
        while True:
            try:
                await self.remove()
            except (CRIError, OSError, ValueError) as error:
                log.info("what a killed containerd may have left stays for now: %s", error)
            await clock.sleep(EVERY)

    async def remove(self) -> list[str]:
        """Removes all that is left over, and says what it was. Nothing, if the runtime is no containerd."""
        if self._places is None:
            self._places = await find_places(self._runtime)
        if self._places is None:
            return []
        return [*await self._remove_bundles(self._places), *await self._remove_networks(self._places)]

    async def _remove_bundles(self, places: Places) -> list[str]:
        # In a thread: to read what a process is called takes a lock that a hung page fault holds.
        shims, old = await offload.run("shims of containerd", LOOK_WITHIN, find_old, places, self._runtime.socket)
        before, self._unknown = self._unknown, set()
        removed = []
        for name in sorted((old | shims.keys()) - await self._known()):
            if await is_known(self._runtime, name):
                continue  # made without CRI, or just being made
            if name not in old | before:
                self._unknown.add(name)
                continue
            log.info("removing what a killed containerd left of container %s", name)
            # A sandbox's shim is that of its containers too; their ids are no shim's, so they end without it.
            for pid in shims.get(name, ()):
                kill_tree(pid)
            if (places.bundles / name).is_dir():
                await remove_bundle(places, name, self._runtime.socket)
            removed.append(f"container {name}")
        return removed

    async def _known(self) -> set[str]:
        sandboxes, containers = await asyncio.gather(self._runtime.list_pod_sandbox(), self._runtime.list_containers())
        return {each.id for each in sandboxes.items} | {each.id for each in containers.containers}

    async def _remove_networks(self, places: Places) -> list[str]:
        there = set(names(places.networks))
        suspects = there - await self._networks_in_use() if there else there
        if not suspects:
            return []
        await self._runtime.sandboxes_under_way()
        await asyncio.sleep(SETTLING)
        removed = []
        for name in sorted(suspects - await self._networks_in_use()):
            path = places.networks / name
            log.info("removing the network namespace %s, which no sandbox has", path)
            with contextlib.suppress(OSError):
                unmount(path, lazily=True)
                path.unlink()
                removed.append(f"network namespace {name}")
        return removed

    async def _networks_in_use(self) -> set[str]:
        """The names of the network namespaces that sandboxes have; those on the host's network have none."""
        listed = {each.id for each in (await self._runtime.list_pod_sandbox()).items}
        self._networks = {id: name for id, name in self._networks.items() if id in listed}
        for id in listed - self._networks.keys():
            try:
                request = cri.PodSandboxStatusRequest(pod_sandbox_id=id, verbose=True)
                answer = await self._runtime.pod_sandbox_status(request)
            except CRIError as error:
                if error.not_found:
                    continue
                raise
            self._networks[id] = network_of(json.loads(answer.info.get("info", "{}")))
        return set(self._networks.values())


def network_of(info: dict[str, Any]) -> str:
    """The name of a sandbox's network namespace from what containerd tells of it; empty if it has none of its own."""
    spec = info.get("runtimeSpec") or {}
    for namespace in (spec.get("linux") or {}).get("namespaces") or ():
        if namespace.get("type") == "network":
            return os.path.basename(namespace.get("path") or "")
    return ""


async def find_places(runtime: Runtime) -> Places | None:
    """Where it keeps things, if it is a containerd."""
    if (await runtime.version()).runtime_name != "containerd":
        return None
    answer = await runtime.status(cri.StatusRequest(verbose=True))
    config = json.loads(answer.info.get("config", "{}"))
    state, root = config.get("stateDir"), config.get("rootDir")
    if not state or not root:
        return None
    state, root = Path(state), Path(root)
    return Places(state.parent / TASKS / NAMESPACE, root.parent / TASKS / NAMESPACE, state / "netns")


def find_old(places: Places, address: Path) -> tuple[dict[str, list[int]], set[str]]:
    """The shims of the containerd at this address, and the ids of those and of bundles that are older than it."""
    shims = find_shims(address)
    started = _started(containerd_process(address))
    old = {name for name, pids in shims.items() if max(map(_started, pids)) < started}
    return shims, old | old_bundles(places.bundles, address)


def old_bundles(bundles: Path, address: Path) -> set[str]:
    """The ids of bundles that were there before this containerd was."""
    try:
        started = address.stat().st_mtime_ns
    except OSError:
        return set()
    found = set()
    for name in names(bundles):
        with contextlib.suppress(OSError):
            # Written once, by containerd; a shim may go on and change the folder itself.
            if (bundles / name / "config.json").stat().st_mtime_ns < started:
                found.add(name)
    return found


async def remove_bundle(places: Places, name: str, address: Path) -> None:
    """Ends a container as containerd would: the shim itself knows how, when it is called with `delete`."""
    bundle = places.bundles / name
    program = _read(bundle / "shim-binary-path") or "containerd-shim-runc-v2"
    arguments = ["-namespace", NAMESPACE, "-address", str(address), "-publish-binary", "containerd"]
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, *arguments, "-id", name, "-bundle", str(bundle), "delete"),
            cwd=bundle,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(DELETE_WITHIN):
                _, said = await process.communicate()
        except TimeoutError:
            process.kill()
            said = b"killed: it did not end"
            await process.wait()
        if process.returncode != 0:  # of one that was not even begun there is nothing to delete
            log.info("%s delete of %s: %s", program, name, said.decode(errors="replace").strip())
    except OSError as error:  # containerd may have noticed that the shim is gone, and cleans up as well
        log.info("%s delete of %s: %s", program, name, error)
    await offload.run(f"bundle {name}", LOOK_WITHIN, _remove_files, bundle, places.work / name)


def _remove_files(bundle: Path, work: Path) -> None:
    for mounted in reversed(mounts(bundle)):
        with contextlib.suppress(OSError):
            unmount(mounted.path, lazily=True)
    if not mounts(bundle):
        remove_tree(bundle, ignore_errors=True)
        remove_tree(work, ignore_errors=True)


def find_shims(address: Path) -> dict[str, list[int]]:
    """The shims of the containerd at this address, by the id of their sandbox."""
    wanted = [f"-namespace\0{NAMESPACE}\0", f"-address\0{address}\0"]
    found: dict[str, list[int]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        text = _read(Path(entry.path, "cmdline")) + "\0"
        if "containerd-shim" not in text.partition("\0")[0] or not all(part in text for part in wanted):
            continue
        words = text.split("\0")
        if "-id" in words[:-1]:
            found.setdefault(words[words.index("-id") + 1], []).append(int(entry.name))
    return found


def containerd_process(address: Path) -> int:
    """The PID of the process that listens on a socket, in this PID namespace; 0 if there is none."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(address))
        except OSError:
            return 0
        pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)


def kill_tree(pid: int) -> None:
    """kill -9 of a process and all that descend from it, parents first so that nothing new is started."""
    with contextlib.suppress(ProcessLookupError):
        children = _read(Path(f"/proc/{pid}/task/{pid}/children")).split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            kill_tree(int(child))


def names(folder: Path) -> list[str]:
    """The entries of a folder; none if it does not exist."""
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _started(pid: int) -> int:
    """When a process began, in the kernel's ticks; 0 if it is not there."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(") ")[2].split()
    return int(fields[19]) if len(fields) > 19 else 0


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").rstrip("\0\n")
    return ""
