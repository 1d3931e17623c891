"""core/v1: container.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ...base import Struct
from ...types import Always, Default, Enum, Int32, Int64, ListType, Patch, Pointer, Quantity, Required, Time
from .compute import ContainerResizePolicy, ResourceRequirements, ResourceStatus
from .env import EnvFromSource, EnvVar
from .probe import Lifecycle, Probe
from .security import SecurityContext
from .volume import VolumeDevice, VolumeMount, VolumeMountStatus


class Container(Struct):
    """A process to run, from an image, inside a pod."""

    name: Annotated[str | None, Required, Always("")] = None
    image: str | None = None
    command: Annotated[list[str] | None, ListType("atomic")] = None
    args: Annotated[list[str] | None, ListType("atomic")] = None
    working_dir: str | None = None
    ports: Annotated[
        list[ContainerPort] | None, ListType("map", keys=("containerPort", "protocol")), Patch("merge", "containerPort")
    ] = None
    env_from: Annotated[list[EnvFromSource] | None, ListType("atomic")] = None
    env: Annotated[list[EnvVar] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None
    resources: Annotated[ResourceRequirements | None, Always({})] = None
    resize_policy: Annotated[list[ContainerResizePolicy] | None, ListType("atomic")] = None
    restart_policy: Annotated[str | None, Pointer] = None
    restart_policy_rules: Annotated[list[ContainerRestartRule] | None, ListType("atomic")] = None
    volume_mounts: Annotated[
        list[VolumeMount] | None, ListType("map", keys=("mountPath",)), Patch("merge", "mountPath")
    ] = None
    volume_devices: Annotated[
        list[VolumeDevice] | None, ListType("map", keys=("devicePath",)), Patch("merge", "devicePath")
    ] = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str | None = None
    termination_message_policy: Annotated[str | None, Enum("FallbackToLogsOnError", "File")] = None
    image_pull_policy: Annotated[str | None, Enum("Always", "IfNotPresent", "Never")] = None
    security_context: SecurityContext | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    tty: bool | None = None


class EphemeralContainer(Struct):
    """A container put into a running pod, for debugging."""

    name: Annotated[str | None, Required, Always("")] = None
    image: str | None = None
    command: Annotated[list[str] | None, ListType("atomic")] = None
    args: Annotated[list[str] | None, ListType("atomic")] = None
    working_dir: str | None = None
    ports: Annotated[
        list[ContainerPort] | None, ListType("map", keys=("containerPort", "protocol")), Patch("merge", "containerPort")
    ] = None
    env_from: Annotated[list[EnvFromSource] | None, ListType("atomic")] = None
    env: Annotated[list[EnvVar] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None
    resources: Annotated[ResourceRequirements | None, Always({})] = None
    resize_policy: Annotated[list[ContainerResizePolicy] | None, ListType("atomic")] = None
    restart_policy: Annotated[str | None, Pointer] = None
    restart_policy_rules: Annotated[list[ContainerRestartRule] | None, ListType("atomic")] = None
    volume_mounts: Annotated[
        list[VolumeMount] | None, ListType("map", keys=("mountPath",)), Patch("merge", "mountPath")
    ] = None
    volume_devices: Annotated[
        list[VolumeDevice] | None, ListType("map", keys=("devicePath",)), Patch("merge", "devicePath")
    ] = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str | None = None
    termination_message_policy: Annotated[str | None, Enum("FallbackToLogsOnError", "File")] = None
    image_pull_policy: Annotated[str | None, Enum("Always", "IfNotPresent", "Never")] = None
    security_context: SecurityContext | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    tty: bool | None = None
    target_container_name: str | None = None


class ContainerPort(Struct):
    name: str | None = None
    host_port: Int32 | None = None
    container_port: Annotated[Int32 | None, Required, Always(0)] = None
    protocol: Annotated[str | None, Default("TCP"), Enum("SCTP", "TCP", "UDP")] = None
    host_ip: str | None = field(default=None, name="hostIP")


class ContainerRestartRule(Struct):
    action: Annotated[str | None, Required] = None
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ContainerRestartRuleOnExitCodes(Struct):
    operator: Annotated[str | None, Required] = None
    values: Annotated[list[Int32] | None, ListType("set")] = None


class ContainerStatus(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    state: Annotated[ContainerState | None, Always({})] = None
    last_state: Annotated[ContainerState | None, Always({})] = None
    ready: Annotated[bool | None, Required, Always(False)] = None
    restart_count: Annotated[Int32 | None, Required, Always(0)] = None
    image: Annotated[str | None, Required, Always("")] = None
    image_id: Annotated[str | None, Required, Always("")] = field(default=None, name="imageID")
    container_id: str | None = field(default=None, name="containerID")
    started: Annotated[bool | None, Pointer] = None
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    volume_mounts: Annotated[
        list[VolumeMountStatus] | None, ListType("map", keys=("mountPath",)), Patch("merge", "mountPath")
    ] = None
    user: ContainerUser | None = None
    allocated_resources_status: Annotated[
        list[ResourceStatus] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
    stop_signal: Annotated[
        str | None,
        Pointer,
        Enum(
            "SIGABRT",
            "SIGALRM",
            "SIGBUS",
            "SIGCHLD",
            "SIGCLD",
            "SIGCONT",
            "SIGFPE",
            "SIGHUP",
            "SIGILL",
            "SIGINT",
            "SIGIO",
            "SIGIOT",
            "SIGKILL",
            "SIGPIPE",
            "SIGPOLL",
            "SIGPROF",
            "SIGPWR",
            "SIGQUIT",
            "SIGRTMAX",
            "SIGRTMAX-1",
            "SIGRTMAX-10",
            "SIGRTMAX-11",
            "SIGRTMAX-12",
            "SIGRTMAX-13",
            "SIGRTMAX-14",
            "SIGRTMAX-2",
            "SIGRTMAX-3",
            "SIGRTMAX-4",
            "SIGRTMAX-5",
            "SIGRTMAX-6",
            "SIGRTMAX-7",
            "SIGRTMAX-8",
            "SIGRTMAX-9",
            "SIGRTMIN",
            "SIGRTMIN+1",
            "SIGRTMIN+10",
            "SIGRTMIN+11",
            "SIGRTMIN+12",
            "SIGRTMIN+13",
            "SIGRTMIN+14",
            "SIGRTMIN+15",
            "SIGRTMIN+2",
            "SIGRTMIN+3",
            "SIGRTMIN+4",
            "SIGRTMIN+5",
            "SIGRTMIN+6",
            "SIGRTMIN+7",
            "SIGRTMIN+8",
            "SIGRTMIN+9",
            "SIGSEGV",
            "SIGSTKFLT",
            "SIGSTOP",
            "SIGSYS",
            "SIGTERM",
            "SIGTRAP",
            "SIGTSTP",
            "SIGTTIN",
            "SIGTTOU",
            "SIGURG",
            "SIGUSR1",
            "SIGUSR2",
            "SIGVTALRM",
            "SIGWINCH",
            "SIGXCPU",
            "SIGXFSZ",
        ),
    ] = None


class ContainerState(Struct):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStateRunning(Struct):
    started_at: Annotated[Time | None, Always(None)] = None


class ContainerStateTerminated(Struct):
    exit_code: Annotated[Int32 | None, Required, Always(0)] = None
    signal: Int32 | None = None
    reason: str | None = None
    message: str | None = None
    started_at: Annotated[Time | None, Always(None)] = None
    finished_at: Annotated[Time | None, Always(None)] = None
    container_id: str | None = field(default=None, name="containerID")


class ContainerStateWaiting(Struct):
    reason: str | None = None
    message: str | None = None


class ContainerUser(Struct):
    linux: LinuxContainerUser | None = None


class LinuxContainerUser(Struct):
    uid: Annotated[Int64 | None, Required, Always(0)] = None
    gid: Annotated[Int64 | None, Required, Always(0)] = None
    supplemental_groups: Annotated[list[Int64] | None, ListType("atomic")] = None
