"""Networks of sandboxes, by CNI: the first configuration of a folder, our own plugins without a process.

A sandbox's network namespace is kept by a mount, so that it can be given back properly even when the sandbox's process
was killed. A configuration template (`{{.PodCIDR}}`) is filled in when the kubelet tells the node's range.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pybernetes.cni import config as cni_config
from pybernetes.cni.errors import CNIError, NoConfigError
from pybernetes.cni.libcni import CNI, RuntimeConf
from pybernetes.component import offload
from pybernetes.cri.errors import CRIError

from . import syscalls
from .network_capabilities import capability_args
from .state import Sandbox

INTERFACE = "eth0"
PLUGIN_WITHIN = 100.0
"""Seconds for one plugin that is a program; it is killed then."""
PLUGINS_WITHIN = 230.0
"""Seconds for all plugins of a sandbox; less than the kubelet waits for the answer."""
T = TypeVar("T")
_RANGES = re.compile(r"\{\{\s*range\s.*?\.PodCIDRRanges\s*\}\}(.*?)\{\{\s*end\s*\}\}(?=\])", re.DOTALL)


class Network:
    """Gives sandboxes their networks and takes them away."""

    def __init__(self, state: Path, conf_dir: Path, bin_dirs: Sequence[str], template: Path | None = None) -> None:
        self._folder = state / "netns"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._conf_dir = conf_dir
        self._template = template
        self._cni = CNI(list(bin_dirs), state / "cni", timeout=PLUGIN_WITHIN)

    def problem(self) -> str:
        """Why no pod can get a network now; empty if nothing is wrong."""
        try:
            self._cni.validate(cni_config.first(self._conf_dir))
        except NoConfigError:
            return "cni plugin not initialized"  # in containerd's words, which tools look for
        except CNIError as error:
            return str(error)
        return ""

    def set_pod_cidr(self, pod_cidr: str) -> None:
        """Fills in the template, if there is one."""
        if self._template is None or not pod_cidr:
            return
        ranges = [each for each in pod_cidr.split(",") if each]
        text = self._template.read_text()
        text = _RANGES.sub(lambda _: ", ".join(json.dumps([{"subnet": each}]) for each in ranges), text)
        text = text.replace("{{.PodCIDR}}", ranges[0])
        self._conf_dir.mkdir(parents=True, exist_ok=True)
        temporary = self._conf_dir / ".10-pods.new"
        temporary.write_text(text)
        os.rename(temporary, self._conf_dir / "10-pods.conflist")

    def path(self, id: str) -> Path:
        """Where a sandbox's network namespace is kept."""
        return self._folder / id

    def keep(self, id: str, pid: int) -> None:
        """Keeps the network namespace of a process."""
        path = self.path(id)
        path.touch()
        syscalls.mount(f"/proc/{pid}/ns/net", str(path), flags=syscalls.MS_BIND)

    async def add(self, sandbox: Sandbox) -> list[str]:
        """Attaches a sandbox; its addresses."""
        result = await self._run(sandbox, self._add)
        found = [str(each["address"]).partition("/")[0] for each in result.get("ips", [])]
        if not found:
            raise CRIError("Unknown", f'failed to setup network for sandbox "{sandbox.id}": no addresses')
        return found

    async def _run(self, sandbox: Sandbox, function: Callable[[Sandbox], T]) -> T:
        """In a thread: plugins are programs of others."""
        try:
            return await offload.run(f"network of sandbox {sandbox.id}", PLUGINS_WITHIN, function, sandbox)
        except offload.Overdue as error:
            raise CRIError("DeadlineExceeded", f"CNI plugins did not answer: {error}") from None

    def _add(self, sandbox: Sandbox) -> dict[str, Any]:
        try:
            return self._cni.add(cni_config.first(self._conf_dir), self._conf(sandbox))
        except CNIError as error:
            raise CRIError("Unknown", f'failed to setup network for sandbox "{sandbox.id}": {error}') from None

    async def delete(self, sandbox: Sandbox) -> None:
        """Gives a sandbox's network back; may be repeated."""
        await self._run(sandbox, self._delete)

    def _delete(self, sandbox: Sandbox) -> None:
        try:
            conf = self._conf(sandbox)
            if not self._cni.delete_cached(conf):  # perhaps an ADD has failed half way
                self._cni.delete(cni_config.first(self._conf_dir), conf)
        except NoConfigError:
            pass  # it was never attached
        except CNIError as error:
            raise CRIError("Unknown", f'failed to destroy network for sandbox "{sandbox.id}": {error}') from None
        self.let_go(sandbox.id)

    def let_go(self, id: str) -> None:
        """Keeps a namespace no longer."""
        with contextlib.suppress(OSError):
            syscalls.umount(str(self.path(id)))
        self.path(id).unlink(missing_ok=True)

    def kept(self) -> list[str]:
        """The sandboxes whose namespaces are kept."""
        return [each.name for each in self._folder.iterdir()]

    def _conf(self, sandbox: Sandbox) -> RuntimeConf:
        metadata = sandbox.config.metadata
        path = self.path(sandbox.id)
        return RuntimeConf(
            sandbox.id,
            str(path) if path.exists() else "",
            INTERFACE,
            (
                ("IgnoreUnknown", "1"),
                ("K8S_POD_NAMESPACE", metadata.namespace),
                ("K8S_POD_NAME", metadata.name),
                ("K8S_POD_INFRA_CONTAINER_ID", sandbox.id),
                ("K8S_POD_UID", metadata.uid),
            ),
            capability_args(sandbox.config),
        )
