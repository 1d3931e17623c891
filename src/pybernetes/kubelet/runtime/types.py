"""Pods as the runtime reports them: `ObservedPod` with its sandboxes and containers, immutable values.

The pure modules (`pod.actions`, `status.pod_status`) take these and the Pod, and no connection to the runtime, so a
test is one line.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace

from pybernetes.api.core.containers import AnyContainer, all_containers
from pybernetes.api.core.v1 import Pod, PodSpec

__all__ = [
    "AnyContainer",
    "ContainerState",
    "ObservedContainer",
    "ObservedPod",
    "ObservedSandbox",
    "PodRef",
    "all_containers",
    "find_container",
    "full_name",
    "replace",
]


class ContainerState(enum.StrEnum):
    """The states that a runtime knows."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PodRef:
    """Which pod, as far as the runtime's labels tell."""

    uid: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    """One container of the runtime, running or not. Times are seconds since 1970, 0 = never."""

    id: str
    """Without the runtime's name: `containerd://` is put in front of it in a status only."""
    name: str
    state: ContainerState
    image: str = ""
    """The name by which it was asked for."""
    image_id: str = ""
    image_ref: str = ""
    hash: str = ""
    """Of the spec that it was made from (`hashing.hash_container`)."""
    restart_count: int = 0
    created_at: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    """The termination message, or what the runtime says about the end."""
    sandbox_id: str = ""
    log_path: str = ""
    annotations: dict[str, str] = field(default_factory=dict, compare=False)
    resources: object | None = field(default=None, compare=False)
    """The CRI's ContainerResources, if the runtime tells them."""
    user: object | None = field(default=None, compare=False)
    """The CRI's ContainerUser, if the runtime tells it."""
    stop_signal: str = ""

    @property
    def running(self) -> bool:
        return self.state is ContainerState.RUNNING

    @property
    def exited(self) -> bool:
        return self.state is ContainerState.EXITED


@dataclass(frozen=True, slots=True)
class ObservedSandbox:
    """One sandbox of the runtime."""

    id: str
    ready: bool
    created_at: float = 0.0
    attempt: int = 0
    ips: tuple[str, ...] = ()
    host_network: bool = False
    runtime_handler: str = ""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """All of a pod that the runtime has. Sandboxes and containers: newest first."""

    ref: PodRef
    sandboxes: tuple[ObservedSandbox, ...] = ()
    containers: tuple[ObservedContainer, ...] = ()

    @property
    def uid(self) -> str:
        return self.ref.uid

    @property
    def sandbox(self) -> ObservedSandbox | None:
        """The newest sandbox."""
        return self.sandboxes[0] if self.sandboxes else None

    @property
    def ips(self) -> tuple[str, ...]:
        """The addresses of the newest sandbox, while it is ready; none on the host's network."""
        sandbox = self.sandbox
        return sandbox.ips if sandbox and sandbox.ready else ()

    def container(self, name: str) -> ObservedContainer | None:
        """The newest container of that name."""
        return next((each for each in self.containers if each.name == name), None)

    def by_id(self, id: str) -> ObservedContainer | None:
        """That container."""
        return next((each for each in self.containers if each.id == id), None)

    def running(self) -> list[ObservedContainer]:
        """All containers that run."""
        return [each for each in self.containers if each.running]


def find_container(pod: Pod, name: str) -> AnyContainer | None:
    """The container of that name, of whatever sort."""
    return next((each for each in all_containers(pod.spec or PodSpec()) if each.name == name), None)


def full_name(pod: Pod) -> str:
    """How messages name a pod: `name_namespace(uid)`, as upstream's `format.Pod`."""
    metadata = pod.metadata
    assert metadata is not None
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"
