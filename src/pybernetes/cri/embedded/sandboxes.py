"""Sandboxes: a process that holds a pod's namespaces, its network, its /dev/shm, its resolv.conf and hostname.

Whatever a step makes is written down before (`network`, the record itself), so that stop and remove can be repeated at
any point and after any crash until nothing is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pybernetes.component.removal import remove_tree
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from . import pause, syscalls
from .events import Events
from .groups import Group, Groups, remove_group
from .images.archive import ARCHITECTURES
from .launching import LauncherError, Launching
from .leftovers import Leftovers
from .network import Network
from .spec import sandbox_spec
from .state import Records, Sandbox, new_id

log = logging.getLogger(__name__)

SHM = "size=65536k,mode=1777"
"""The size of a pod's /dev/shm: containerd's and docker's."""
LEAST = 1 << 20
"""Bytes that a pod's hosts, hostname and resolv.conf may have together, unless the node's own are longer."""
HANDLERS = ("", "embedded")


class Sandboxes:
    """All sandboxes of this node. `stop_containers` stops, and removes if asked, what runs in one."""

    def __init__(
        self,
        root: Path,
        state: Path,
        launching: Launching,
        network: Network,
        events: Events,
        groups: Groups,
        *,
        plain_address: str = "",
    ) -> None:
        self.plain_address = plain_address
        """Where nothing can be isolated: the address of all pods."""
        self._state = state
        self._groups = groups
        self._launching = launching
        self._network = network
        self._events = events
        self._records = Records(root / "sandboxes", Sandbox, cri.PodSandboxConfig)
        self._leftovers = Leftovers()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.all: dict[str, Sandbox] = {}
        self.pids: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self.stop_containers: Callable[[str, bool], Awaitable[None]]
        self._rootfs = state / "pause"
        self._rootfs.mkdir(parents=True, exist_ok=True)
        program = self._rootfs / "pause"
        if not program.exists():
            temporary = self._rootfs / ".pause"
            temporary.write_bytes(pause.program(ARCHITECTURES.get(os.uname().machine, os.uname().machine)))
            temporary.chmod(0o755)
            temporary.rename(program)

    def get(self, id: str) -> Sandbox:
        """The sandbox of an id; NotFound."""
        found = self.all.get(id)
        if found is None:
            raise CRIError("NotFound", f'an error occurred when try to find sandbox: sandbox "{id}": not found')
        return found

    def ids(self) -> set[str]:
        """Of all sandboxes, also of those that are just being made."""
        return self.all.keys() | set(self._names.values())

    async def run(self, config: Any, handler: str) -> str:
        """Makes and starts a sandbox; its id. Nothing is left of one that could not be started."""
        if handler not in HANDLERS:
            raise CRIError("Unknown", f'failed to get sandbox runtime: no runtime for "{handler}" is configured')
        if self.plain_address:
            refuse_for_plain(config)
        metadata = config.metadata
        name = f"{metadata.name}_{metadata.namespace}_{metadata.uid}_{metadata.attempt}"
        if name in self._names:
            text = f'failed to reserve sandbox name "{name}": name "{name}" is reserved for "{self._names[name]}"'
            raise CRIError("Unknown", text)
        sandbox = Sandbox(new_id(), config, handler, time.time_ns())
        self._names[name] = sandbox.id
        own_network = config.linux.security_context.namespace_options.network != cri.NODE
        if self.plain_address:
            sandbox.ips = [self.plain_address] if own_network else []
            own_network = False
        sandbox.network = own_network
        try:
            self._records.create(sandbox)
            try:
                await self._start(sandbox, own_network)
            except BaseException as error:
                await self._undo(sandbox)
                if isinstance(error, OSError):  # its process may have ended already, and its namespaces with it
                    raise CRIError("Unknown", f"failed to start sandbox {sandbox.id}: {error}") from None
                raise
        except BaseException:
            self._names.pop(name, None)
            raise
        self.all[sandbox.id] = sandbox
        self._events.tell(cri.CONTAINER_CREATED_EVENT, sandbox.id, sandbox.id)
        self._events.tell(cri.CONTAINER_STARTED_EVENT, sandbox.id, sandbox.id)
        return sandbox.id

    async def _start(self, sandbox: Sandbox, own_network: bool) -> None:
        group = self.cgroup(sandbox)
        group.create()
        self._files(sandbox)
        plain = bool(self.plain_address)
        self._records.write_spec(sandbox.id, sandbox_spec(sandbox, self._rootfs, group.folders(), plain=plain))
        try:
            answer = await self._launching.start(self._records.spec(sandbox.id))
        except LauncherError as error:
            raise CRIError("Unknown", f"failed to start sandbox {sandbox.id}: {error}") from None
        self.pids[sandbox.id] = int(answer["pid"])
        self._groups.started(sandbox.id, self.pids[sandbox.id])
        if own_network:
            self._network.keep(sandbox.id, self.pids[sandbox.id])
            sandbox.ips = await self._network.add(sandbox)
            if sandbox.id not in self.pids:
                raise CRIError("Unknown", f"failed to start sandbox {sandbox.id}: its process has ended")
        sandbox.ready = True
        self._records.save(sandbox)

    async def _undo(self, sandbox: Sandbox) -> None:
        try:
            await self._take_down(sandbox)
            self._clean(sandbox)
        except Exception as error:
            # It stays as a sandbox that is not ready: the kubelet stops and removes it again.
            log.error("what is left of sandbox %s is for later: %s", sandbox.id, error)
            self.all[sandbox.id] = sandbox

    def files(self, sandbox: Sandbox) -> dict[str, Path]:
        """The files that containers get from a sandbox, by their path in the container."""
        if self.plain_address:
            return {}  # they see this machine's
        folder = self._state / "sandboxes" / sandbox.id
        options = sandbox.config.linux.security_context.namespace_options
        shm = Path("/dev/shm") if options.ipc == cri.NODE else folder / "shm"
        found = {"/dev/shm": shm, "/etc/resolv.conf": folder / "resolv.conf", "/etc/hostname": folder / "hostname"}
        return found | {"/etc/hosts": folder / "hosts"}

    def _files(self, sandbox: Sandbox) -> None:
        config, files = sandbox.config, self.files(sandbox)
        if not files:
            return
        content = {
            "/etc/hostname": f"{config.hostname or os.uname().nodename}\n".encode(),
            "/etc/resolv.conf": resolv_conf(config.dns_config).encode(errors="surrogateescape"),
            "/etc/hosts": Path("/etc/hosts").read_bytes() if Path("/etc/hosts").exists() else b"",
        }
        folder = self._state / "sandboxes" / sandbox.id
        folder.mkdir(parents=True, mode=0o711)
        usual = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
        # The pod may write to these files: without a file system of their own they could fill the node's /run.
        size = max(LEAST, 2 * sum(map(len, content.values())))
        syscalls.mount("files", str(folder), "tmpfs", usual, f"size={size},mode=711")
        if files["/dev/shm"].parent == folder:
            files["/dev/shm"].mkdir()
            syscalls.mount("shm", str(files["/dev/shm"]), "tmpfs", usual, SHM)
        for path, text in content.items():
            files[path].write_bytes(text)

    def cgroup(self, sandbox: Sandbox) -> Group:
        """Where its own process is."""
        return self._groups.of(sandbox.config.linux.cgroup_parent, sandbox.id)

    async def stop(self, id: str) -> None:
        """Stops what runs in a sandbox and gives its network back; one that is not there is no error."""
        sandbox = self.all.get(id)
        if sandbox is None:
            return
        async with self._locks[id]:
            if id not in self.all:  # removed meanwhile
                return
            await self.stop_containers(id, False)
            was_ready = sandbox.ready
            await self._take_down(sandbox)
            if was_ready:
                self._events.tell(cri.CONTAINER_STOPPED_EVENT, id, id)

    async def _take_down(self, sandbox: Sandbox) -> None:
        sandbox.ready = False
        self._records.try_save(sandbox)  # pods can be ended on a full disk too: it may be how it is emptied
        if sandbox.network:
            await self._network.delete(sandbox)
            sandbox.network = False
            self._records.try_save(sandbox)
        group = self.cgroup(sandbox)
        group.kill()
        await remove_group(sandbox.id, group)
        self._groups.gone(sandbox.id)
        self._unmount(sandbox.id)

    def _unmount(self, id: str) -> None:
        """Takes a sandbox's files away, with /dev/shm, which lies in their folder."""
        folder = self._state / "sandboxes" / id
        for path in (folder, folder / "shm"):  # the second where an older runtime made it
            with contextlib.suppress(OSError):
                syscalls.umount(str(path))

    async def remove(self, id: str) -> None:
        """Removes a sandbox with all its containers, by force; one that is not there is no error."""
        if id not in self.all:
            return
        await self.stop(id)
        async with self._locks[id]:
            await self.stop_containers(id, True)
            sandbox = self.all.pop(id, None)
            if sandbox is None:
                return
            self._clean(sandbox)
        self._locks.pop(id, None)
        metadata = sandbox.config.metadata
        self._names.pop(f"{metadata.name}_{metadata.namespace}_{metadata.uid}_{metadata.attempt}", None)
        self._events.tell(cri.CONTAINER_DELETED_EVENT, id, id, self.status(sandbox))

    def _clean(self, sandbox: Sandbox) -> None:
        self._leftovers.remove(self._state / "sandboxes" / sandbox.id)
        self._records.remove(sandbox.id)
        self._launching.forget(sandbox.id)
        self.pids.pop(sandbox.id, None)

    def ended(self, id: str) -> None:
        """A sandbox's process is gone."""
        self.pids.pop(id, None)
        self._launching.forget(id)
        sandbox = self.all.get(id)
        if sandbox is not None and sandbox.ready:
            sandbox.ready = False
            self._records.try_save(sandbox)  # else the next runtime sees for itself that there is no process
            self._events.tell(cri.CONTAINER_STOPPED_EVENT, id, id)

    def recover(self, running: dict[str, int]) -> None:
        """Finds out what there is after a start: all records, those whose process runs still being ready."""
        for sandbox in self._records.load():
            self.all[sandbox.id] = sandbox
            metadata = sandbox.config.metadata
            self._names[f"{metadata.name}_{metadata.namespace}_{metadata.uid}_{metadata.attempt}"] = sandbox.id
            if sandbox.id in running:
                self.pids[sandbox.id] = running[sandbox.id]
                self._groups.started(sandbox.id, running[sandbox.id])
            elif sandbox.ready:
                sandbox.ready = False
                self._records.try_save(sandbox)
        folder = self._state / "sandboxes"
        if folder.is_dir():
            for each in folder.iterdir():
                if each.name not in self.all:
                    self._unmount(each.name)
                    remove_tree(each, ignore_errors=True)

    def status(self, sandbox: Sandbox) -> Any:
        """CRI's PodSandboxStatus."""
        options = sandbox.config.linux.security_context.namespace_options
        return cri.PodSandboxStatus(
            id=sandbox.id,
            metadata=sandbox.config.metadata,
            state=cri.SANDBOX_READY if sandbox.ready else cri.SANDBOX_NOTREADY,
            created_at=sandbox.created_at,
            network=cri.PodSandboxNetworkStatus(
                ip=sandbox.ips[0] if sandbox.ips else "",
                additional_ips=[cri.PodIP(ip=each) for each in sandbox.ips[1:]],
            ),
            linux=cri.LinuxPodSandboxStatus(namespaces=cri.Namespace(options=options)),
            labels=sandbox.config.labels,
            annotations=sandbox.config.annotations,
            runtime_handler=sandbox.handler,
        )

    def list(self, filter: Any) -> list[Any]:
        """CRI's PodSandboxes that match a filter."""
        found = []
        for sandbox in self.all.values():
            state = cri.SANDBOX_READY if sandbox.ready else cri.SANDBOX_NOTREADY
            if filter.id and not sandbox.id.startswith(filter.id):
                continue
            if filter.HasField("state") and filter.state.state != state:
                continue
            if not matches(sandbox.config.labels, filter.label_selector):
                continue
            found.append(
                cri.PodSandbox(
                    id=sandbox.id,
                    metadata=sandbox.config.metadata,
                    state=state,
                    created_at=sandbox.created_at,
                    labels=sandbox.config.labels,
                    annotations=sandbox.config.annotations,
                    runtime_handler=sandbox.handler,
                )
            )
        return found


def refuse_for_plain(config: Any) -> None:
    """Refuse settings that a plain process cannot have; CRIError names them."""
    context = config.linux.security_context
    moved = [each for each in config.port_mappings if each.host_port and each.host_port != each.container_port]
    problem = ""
    if context.privileged:
        problem = "privileged containers"
    elif config.linux.sysctls:
        problem = f"sysctls ({', '.join(config.linux.sysctls)})"
    elif moved:
        problem = f"hostPort {moved[0].host_port} for another containerPort ({moved[0].container_port})"
    if problem:
        raise CRIError("FailedPrecondition", f"containers are plain processes on this node: {problem} need root")


def matches(labels: Any, selector: Any) -> bool:
    """Whether labels have all that a filter names."""
    return all(labels.get(key) == value for key, value in selector.items())


def resolv_conf(dns: Any) -> str:
    """A pod's resolv.conf; the node's own if nothing is said."""
    lines = [f"search {' '.join(dns.searches)}"] if dns.searches else []
    lines += [f"nameserver {each}" for each in dns.servers]
    lines += [f"options {' '.join(dns.options)}"] if dns.options else []
    if lines:
        return "\n".join(lines) + "\n"
    try:
        return Path("/etc/resolv.conf").read_text()
    except OSError:
        return ""
