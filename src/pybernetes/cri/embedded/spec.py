"""Translates CRI requests to orders for the launcher. Pure; `node_paths` looks at the node's own files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pybernetes.cri import capabilities
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from . import seccomp, security, syscalls
from .images.config import ImageConfig
from .images.store import Rootfs
from .signals import signal_number
from .state import Container, Sandbox

JOINED = syscalls.NEWNET | syscalls.NEWIPC | syscalls.NEWUTS


def sandbox_spec(sandbox: Sandbox, rootfs: Path, cgroups: Sequence[Path], *, plain: bool = False) -> dict[str, Any]:
    """How a sandbox's process is started; `plain`: as a plain process."""
    if plain:
        return {"kind": "sandbox", "id": sandbox.id, "plain": True, "pid": ["node", ""], "rootfs": str(rootfs)}
    security.refuse_unsupported(sandbox.config.linux.security_context)
    options = sandbox.config.linux.security_context.namespace_options
    unshared = 0
    if options.network != cri.NODE:
        unshared |= syscalls.NEWNET | syscalls.NEWUTS
    if options.ipc != cri.NODE:
        unshared |= syscalls.NEWIPC
    if sandbox.config.hostname and options.network == cri.NODE:
        raise CRIError("InvalidArgument", "unable to set hostname without a private UTS namespace")
    return {
        "kind": "sandbox",
        "id": sandbox.id,
        "cgroups": [str(each) for each in cgroups],
        "unshare": unshared,
        "pid": ["node" if options.pid == cri.NODE else "own", ""],
        "hostname": sandbox.config.hostname,
        "sysctls": security.sysctl_files(
            sandbox.config.linux.sysctls, own_network=options.network != cri.NODE, own_ipc=options.ipc != cri.NODE
        ),
        "rootfs": str(rootfs),
    }


def container_spec(
    container: Container,
    sandbox: Sandbox,
    rootfs: Rootfs,
    mount_point: Path,
    cgroups: Sequence[Path],
    cgroup_mounts: Sequence[tuple[str, str, str]],
    defaults: Mapping[str, Path],
    layers_of: Callable[[str], list[str]],
    devices: Sequence[dict[str, str]],
    *,
    plain: bool = False,
) -> dict[str, Any]:
    """How a container is started; `plain`: as a plain process.

    `defaults` are files and folders that it gets where nothing else is mounted, `layers_of` are an image volume's.
    """
    config = container.config
    context = config.linux.security_context
    return {
        "kind": "container",
        "plain": plain,
        "id": container.id,
        "container": container.id,
        "sandbox": sandbox.id,
        "cgroups": [str(each) for each in cgroups],
        "cgroup_mounts": [list(each) for each in cgroup_mounts],
        "oom_score_adj": config.linux.resources.oom_score_adj,
        "join": JOINED,
        "pid": ["node", ""] if plain else pid_namespace(context.namespace_options, sandbox.id),
        "layers_dir": str(rootfs.layers),
        "lower": list(rootfs.lower),
        "upper": str(rootfs.upper),
        "work": str(rootfs.work),
        "rootfs": str(mount_point),
        "mounts": mounts(config.mounts, defaults, layers_of),
        "devices": list(devices),
        "privileged": context.privileged,
        "readonly_rootfs": context.readonly_rootfs,
        "masked_paths": [] if context.privileged else list(context.masked_paths),
        "readonly_paths": [] if context.privileged else list(context.readonly_paths),
        "user": user(context, rootfs.config.user),
        **granted(context),
        "args": arguments(config, rootfs.config),
        "env": environment(config, rootfs.config, sandbox.config.hostname or os.uname().nodename),
        "cwd": config.working_dir or rootfs.config.workdir or "/",
        "make_cwd": True,
        "tty": config.tty,
        "stdin": config.stdin,
        "log_path": container.log_path,
    }


def pid_namespace(options: Any, sandbox_id: str) -> list[str]:
    """The PID namespace of a container: its own, the pod's, the node's, or that of another container."""
    if options.pid == cri.NODE:
        return ["node", ""]
    if options.pid == cri.POD:
        return ["join", sandbox_id]
    if options.pid == cri.TARGET:
        return ["join", options.target_id]
    return ["own", ""]


def mount_targets(config: Any) -> set[str]:
    """Where a request mounts something."""
    return {os.path.normpath(each.container_path) for each in config.mounts}


def mounts(
    wanted: Sequence[Any], defaults: Mapping[str, Path], layers_of: Callable[[str], list[str]]
) -> list[dict[str, Any]]:
    """The mounts, parents before children."""
    propagation = {
        cri.PROPAGATION_PRIVATE: syscalls.MS_PRIVATE,
        cri.PROPAGATION_HOST_TO_CONTAINER: syscalls.MS_SLAVE,
        cri.PROPAGATION_BIDIRECTIONAL: syscalls.MS_SHARED,
    }
    found = []
    for each in wanted:
        of_image = each.HasField("image") and bool(each.image.image)
        if not each.container_path.startswith("/"):
            raise CRIError("InvalidArgument", f"mount target {each.container_path!r} must be an absolute path")
        if each.recursive_read_only and not each.readonly:
            raise CRIError("InvalidArgument", f"mount {each.container_path}: recursive read-only needs read-only")
        found.append(
            {
                "source": each.host_path,
                "target": os.path.normpath(each.container_path),
                "readonly": each.readonly or of_image,
                "layers": layers_of(each.image.image) if of_image else [],
                "sub_path": each.image_sub_path,
                "recursive": each.recursive_read_only,
                "propagation": propagation[each.propagation],
            }
        )
    taken = {each["target"] for each in found}
    for target, source in defaults.items():
        if target not in taken:
            found.append(
                {
                    "source": str(source),
                    "target": target,
                    "readonly": False,
                    "layers": [],
                    "recursive": False,
                    "propagation": syscalls.MS_PRIVATE,
                }
            )
    return sorted(found, key=lambda each: str(each["target"]).count("/") if each["target"] != "/" else 0)


def user(context: Any, image_user: str) -> dict[str, Any]:
    """The user that `users.resolve` looks up."""
    name = image_user
    if context.HasField("run_as_user"):
        name = str(context.run_as_user.value)  # without the image's group: as with containerd, it is root's then
    elif context.run_as_username:
        name = context.run_as_username
    if context.HasField("run_as_group") and not name:
        raise CRIError("InvalidArgument", "user is empty, but run_as_group is set")
    return {
        "user": name,
        "group": context.run_as_group.value if context.HasField("run_as_group") else None,
        "groups": list(context.supplemental_groups),
        "strict": context.supplemental_groups_policy == cri.Strict,
    }


def granted(context: Any) -> dict[str, Any]:
    """Capabilities, whether more can be had, and which calls are refused."""
    security.refuse_unsupported(context)
    everything = capabilities.current()
    try:
        asked = context.capabilities
        own = everything if context.privileged else 0
        own |= capabilities.wanted(asked.add_capabilities, asked.drop_capabilities, everything)
        ambient = capabilities.mask(asked.add_ambient_capabilities, everything)
    except ValueError as error:
        raise CRIError("InvalidArgument", str(error)) from None
    return {
        "capabilities": own | ambient,
        "ambient": ambient,
        "no_new_privs": context.no_new_privs,
        "seccomp": seccomp.filter_of(context, own | ambient).hex(),
    }


def arguments(config: Any, image: ImageConfig) -> list[str]:
    """The argument vector: a command of its own goes without the image's arguments."""
    command, args = list(config.command), list(config.args)
    if not command:
        command = list(image.entrypoint)
        args = args or list(image.cmd)
    if not command and not args:
        raise CRIError("InvalidArgument", "no command specified")
    return command + args


def environment(config: Any, image: ImageConfig, hostname: str) -> list[list[str]]:
    """The variables: the image's, over them the container's."""
    found = {"HOSTNAME": hostname}
    found |= {key: value for key, _, value in (each.partition("=") for each in image.env)}
    found |= {each.key: each.value.decode(errors="surrogateescape") for each in config.envs}
    return [[key, value] for key, value in found.items()]


def stop_signal(config: Any, image: ImageConfig) -> int:
    """The signal that asks a container to end."""
    name = image.stop_signal
    if config.stop_signal != cri.RUNTIME_DEFAULT:
        name = _signal_names().get(config.stop_signal, "")
    return signal_number(name)


def _signal_names() -> dict[int, str]:
    return {
        value: name for name, value in cri.proto().names.items() if name.startswith("SIG") and isinstance(value, int)
    }
