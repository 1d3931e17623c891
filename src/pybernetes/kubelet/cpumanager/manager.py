"""Which container runs on which CPUs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from pybernetes.api.core.v1 import Pod

SetCpuset = Callable[[str, str], Awaitable[None]]
"""`await set_cpuset(container id, "0-3,7")`: UpdateContainerResources of the runtime."""


class CPUManager:
    """Gives CPUs to containers and takes them back; policy `none` or `static`."""

    def __init__(
        self,
        policy: str,
        root: Path,
        *,
        topology: object | None = None,
        reserved_cpus: str = "",
        reserved_milli: int = 0,
        options: dict[str, str] | None = None,
        set_cpuset: SetCpuset | None = None,
    ) -> None:
        """`root` is the kubelet's folder (the state is `cpu_manager_state` in it); `reserved_cpus` a list, or
        `reserved_milli` what is reserved of CPU for kube and system together."""
        raise NotImplementedError

    def admit(self, pod: Pod) -> None:
        """Give CPUs to each container of the pod that should have its own; `PodRefused` if there are not enough."""
        raise NotImplementedError

    def cpuset(self, uid: str, container: str) -> str:
        """For the container's config: its CPUs or those that are shared; empty: any."""
        raise NotImplementedError

    def exclusive(self, uid: str, container: str = "") -> bool:
        """Whether a container (or any of the pod) has CPUs of its own."""
        raise NotImplementedError

    def remove(self, uid: str) -> None:
        """Take back the CPUs of a pod that has ended."""
        raise NotImplementedError

    async def reconcile(self, running: Iterable[tuple[str, str, str]]) -> None:
        """Every 10 s, with (pod uid, container name, container id) of what runs: tell the runtime what changed."""
        raise NotImplementedError
