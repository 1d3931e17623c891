"""Removes what a containerd that was killed has left of pods it was just making or ending, and its successor forgot.

containerd's CRI part takes up again what it had written down. What it had begun a moment before is lost to it: a shim
with its processes and its bundle whose container is not known (any more), a network namespace that no sandbox has.
Nobody else would ever remove them. What is known to the runtime is never touched, nor what it is just making:
- A bundle older than containerd's socket is of an earlier containerd; if no sandbox or container has its id, and nobody
  but it makes containers with new ids, it is left over.
- A network namespace is left over if no sandbox has it, now and after all sandboxes that were being made now are made.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from .volumes.mounting import mounts, unmount

NAMESPACE = "k8s.io"
"""containerd's own namespace for what CRI makes; no Kubernetes namespace."""
TASKS = "io.containerd.runtime.v2.task"
SETTLING = 2.0
"""Seconds between the end of the last sandbox's making and the look at who has which network namespace."""
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

    async def remove(self) -> list[str]:
        """Removes all that is left over, and says what it was. Nothing, if the runtime is no containerd."""
        if self._places is None:
            self._places = await find_places(self._runtime)
        if self._places is None:
            return []
        return [*await self._remove_bundles(self._places), *await self._remove_networks(self._places)]

    async def _remove_bundles(self, places: Places) -> list[str]:
        old = old_bundles(places.bundles, self._runtime.socket)
        if not old:
            return []
        known = await self._known()
        removed = []
        for name in sorted(old - known):
            log.info("removing what a killed containerd left of container %s", name)
            await remove_bundle(places, name, self._runtime.socket, alone=not shares_shim(places.bundles, name, known))
            removed.append(f"container {name}")
        return removed

    async def _known(self) -> set[str]:
        sandboxes, containers = await asyncio.gather(self._runtime.list_pod_sandbox(), self._runtime.list_containers())
        return {each.id for each in sandboxes.items} | {each.id for each in containers.containers}

    async def _remove_networks(self, places: Places) -> list[str]:
        there = set(names(places.networks))
        if not there or len(there) <= len((await self._runtime.list_pod_sandbox()).items):
            return []
        suspects = there - await self._networks_in_use()
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
        found = set()
        for sandbox in (await self._runtime.list_pod_sandbox()).items:
            request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id, verbose=True)
            try:
                answer = await self._runtime.pod_sandbox_status(request)
            except CRIError as error:
                if error.not_found:
                    continue
                raise
            info = json.loads(answer.info.get("info", "{}"))
            for namespace in ((info.get("runtimeSpec") or {}).get("linux") or {}).get("namespaces") or ():
                if namespace.get("type") == "network" and namespace.get("path"):
                    found.add(os.path.basename(namespace["path"]))
        return found


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


def old_bundles(bundles: Path, socket: Path) -> set[str]:
    """The ids of bundles that were there before this containerd was."""
    try:
        started = socket.stat().st_mtime_ns
    except OSError:
        return set()
    found = set()
    for name in names(bundles):
        with contextlib.suppress(OSError):
            # Written once, by containerd; a shim may go on and change the folder itself.
            if (bundles / name / "config.json").stat().st_mtime_ns < started:
                found.add(name)
    return found


def shares_shim(bundles: Path, name: str, known: Iterable[str]) -> bool:
    """Whether the shim of a bundle also serves something that is known."""
    address = _address(bundles, name)
    return bool(address) and any(_address(bundles, each) == address for each in known)


async def remove_bundle(places: Places, name: str, socket: Path, *, alone: bool) -> None:
    """Ends a container as containerd would: the shim itself knows how, when it is called with `delete`."""
    bundle = places.bundles / name
    program = _read(bundle / "shim-binary-path") or "containerd-shim-runc-v2"
    if alone:
        for pid in shims(name, socket):
            kill_tree(pid)
    arguments = ["-namespace", NAMESPACE, "-address", str(socket), "-publish-binary", "containerd"]
    process = await asyncio.create_subprocess_exec(
        *(program, *arguments, "-id", name, "-bundle", str(bundle), "delete"),
        cwd=bundle,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode != 0:  # of one that was not even begun there is nothing to delete
        log.info("%s delete of %s: %s", program, name, said.decode(errors="replace").strip())
    for mounted in reversed(mounts(bundle)):
        with contextlib.suppress(OSError):
            unmount(mounted.path, lazily=True)
    if not mounts(bundle):
        shutil.rmtree(bundle, ignore_errors=True)
        shutil.rmtree(places.work / name, ignore_errors=True)


def shims(name: str, socket: Path) -> list[int]:
    """The processes that are shims of this containerd for a sandbox."""
    wanted = [f"-id\0{name}\0", f"-namespace\0{NAMESPACE}\0", f"-address\0{socket}\0"]
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            text = _read(Path(entry.path, "cmdline")) + "\0"
            if "containerd-shim" in text and all(part in text for part in wanted):
                found.append(int(entry.name))
    return found


def kill_tree(pid: int) -> None:
    """kill -9 of a process and all that descend from it, parents first so that nothing new is started."""
    with contextlib.suppress(ProcessLookupError):
        children = _read(Path(f"/proc/{pid}/task/{pid}/children")).split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            kill_tree(int(child))


def names(folder: Path) -> list[str]:
    """What is in a folder; nothing if it is not there."""
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _address(bundles: Path, name: str) -> str:
    return _read(bundles / name / "address")


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").rstrip("\0\n")
    return ""
