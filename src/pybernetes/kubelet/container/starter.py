"""Starts one container: image, config, create, start, postStart hook. Every failure has upstream's reason and words."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.v1 import EphemeralContainer, Pod, Secret
from pybernetes.client.events import NORMAL, WARNING, EventRecorder
from pybernetes.client.keys import uid_of
from pybernetes.component import offload
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from .. import events
from ..error_text import why
from ..images.manager import ImageError, ImageManager
from ..pod.actions import FAILED_POST_START
from ..pod.killing import Killer
from ..runtime.types import ContainerState as State
from ..runtime.types import ObservedContainer, ObservedPod, full_name
from ..volumes.base import Volumes
from .config import ConfigBuilder, ContainerExtras
from .config_error import ConfigError
from .hash import hash_container
from .hooks import HookFailed, Hooks

# reasons of a container's waiting state
CREATE_CONTAINER_CONFIG_ERROR: Final = "CreateContainerConfigError"
CREATE_CONTAINER_ERROR: Final = "CreateContainerError"
PRE_CREATE_HOOK_ERROR: Final = "PreCreateHookError"
RUN_CONTAINER_ERROR: Final = "RunContainerError"
POST_START_HOOK_ERROR: Final = "PostStartHookError"
LOOK_WITHIN: Final = 10.0
"""Seconds for a look at the logs of a container."""
log = logging.getLogger(__name__)
_LOG_NAME = re.compile(r"(\d+)\.log(\..*)?")

Extras = Callable[[Pod, AnyContainer], Awaitable[ContainerExtras | None]]
"""Returns the devices and CPUs of a container."""


class StartFailed(Exception):
    """A container could not be started: the reason and message of its waiting state."""

    def __init__(self, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


@dataclass(slots=True)
class Sandbox:
    """Where containers are started."""

    id: str
    config: Any
    ips: Sequence[str]
    handler: str = ""
    volumes: Volumes = field(default_factory=dict)
    secrets: Sequence[Secret] = ()
    image_volumes: Mapping[str, str | ImageError] = field(default_factory=dict)
    """The images of image volumes, by volume name."""


class Starter:
    """Starts containers in the runtime, and tells."""

    def __init__(
        self,
        runtime: Runtime,
        images: ImageManager,
        configs: ConfigBuilder,
        hooks: Hooks,
        killer: Killer,
        recorder: EventRecorder,
        extras: Extras,
        *,
        pod_logs: Path,
        container_logs: Path | None,
    ) -> None:
        self._runtime = runtime
        self._images = images
        self._configs = configs
        self._hooks = hooks
        self._killer = killer
        self._recorder = recorder
        self._extras = extras
        self._pod_logs = pod_logs
        self._container_logs = container_logs

    async def start(self, pod: Pod, container: AnyContainer, sandbox: Sandbox, observed: ObservedPod) -> str:
        """Start a container; its id. Raises `StartFailed`."""
        name = container.name or ""
        reference = events.container_reference(pod, name)
        try:
            refs = _image_volumes(container, sandbox.image_volumes)
            image = await self._images.ensure(
                pod, container, reference, sandbox.secrets, sandbox.config, sandbox.handler
            )
        except ImageError as error:
            self._failed(pod, name, f"Error: {error.reason}")
            raise StartFailed(error.reason, error.message, error.retry_after) from error
        try:
            count = await self._restart_count(pod, name, observed)
            config = await self._configs.container(
                pod,
                container,
                restart_count=count,
                hash=hash_container(container),
                image_ref=image.ref,
                image_user=image.user,
                pod_ips=sandbox.ips,
                volumes=sandbox.volumes,
                image_refs=refs,
                target_id=_target(container, observed),
                extras=await self._extras(pod, container),
            )
        except ConfigError as error:
            self._failed(pod, name, f"Error: {error}")
            raise StartFailed(CREATE_CONTAINER_CONFIG_ERROR, str(error)) from error
        try:
            answer = await self._runtime.create_container(
                cri.CreateContainerRequest(pod_sandbox_id=sandbox.id, config=config, sandbox_config=sandbox.config)
            )
        except CRIError as error:
            self._failed(pod, name, f"Error: {error.message}")
            raise StartFailed(CREATE_CONTAINER_ERROR, error.message) from error
        id: str = answer.container_id
        self._recorder.event(reference, NORMAL, events.CREATED, "Container created")
        try:
            await self._runtime.start_container(cri.StartContainerRequest(container_id=id))
        except CRIError as error:
            self._failed(pod, name, f"Error: {error.message}")
            raise StartFailed(RUN_CONTAINER_ERROR, error.message) from error
        self._recorder.event(reference, NORMAL, events.STARTED, "Container started")
        await self._link_log(pod, name, id, Path(sandbox.config.log_directory) / config.log_path)
        await self._post_start(pod, container, id, sandbox, observed)
        return id

    async def _post_start(
        self, pod: Pod, container: AnyContainer, id: str, sandbox: Sandbox, observed: ObservedPod
    ) -> None:
        handler = container.lifecycle.post_start if container.lifecycle else None
        if handler is None:
            return
        name = container.name or ""
        try:
            await self._hooks.run(pod, container, id, handler, sandbox.ips[0] if sandbox.ips else "")
        except HookFailed as error:
            log.info("postStart hook of %s in %s: %s", name, full_name(pod), error)
            # The text may contain the response of the hook's server, which must not become public.
            reference = events.container_reference(pod, name)
            self._recorder.event(reference, WARNING, events.FAILED_POST_START_HOOK, "PostStartHook failed")
            found = ObservedContainer(id, name, State.RUNNING)
            with contextlib.suppress(CRIError):
                await self._killer.kill_container(pod, found, observed, "FailedPostStartHook", FAILED_POST_START)
            raise StartFailed(POST_START_HOOK_ERROR, str(error)) from error

    async def _restart_count(self, pod: Pod, name: str, observed: ObservedPod) -> int:
        """Raises `ConfigError`."""
        found = observed.container(name)
        if found is not None:
            return found.restart_count + 1
        # The runtime may have forgotten (a reboot): the logs have not, and must not be overwritten.
        assert pod.metadata is not None
        metadata = pod.metadata
        folder = self._pod_logs / f"{metadata.namespace}_{metadata.name}_{metadata.uid}" / name
        try:
            return await offload.run(f"pod {metadata.uid}", LOOK_WITHIN, _logged_restarts, folder)
        except OSError as error:
            raise ConfigError(f"cannot read directory {folder}: {why(error)}") from None

    async def _link_log(self, pod: Pod, name: str, id: str, log_file: Path) -> None:
        """Where log shippers look: one folder with a link for each container."""
        if self._container_logs is None:
            return
        link = self._container_logs / log_link(pod, name, id)
        with contextlib.suppress(OSError):
            await offload.run(f"pod {uid_of(pod)}", LOOK_WITHIN, _link, link, log_file)

    def _failed(self, pod: Pod, name: str, message: str) -> None:
        self._recorder.event(events.container_reference(pod, name), WARNING, events.FAILED, message)


def _logged_restarts(folder: Path) -> int:
    """How often a container was started, by its logs."""
    try:
        found = [_LOG_NAME.fullmatch(each) for each in os.listdir(folder)]
    except FileNotFoundError:
        return 0
    return max((int(each[1]) + 1 for each in found if each), default=0)


def _link(link: Path, log_file: Path) -> None:
    if log_file.exists():
        link.symlink_to(log_file)


def log_link(pod: Pod, name: str, id: str) -> str:
    """The name of a container's log in the folder of all containers' logs."""
    assert pod.metadata is not None
    return f"{pod.metadata.name}_{pod.metadata.namespace}_{name}-{id}.log"


def _target(container: AnyContainer, observed: ObservedPod) -> str:
    """The container whose processes an ephemeral container wants to see."""
    name = container.target_container_name if isinstance(container, EphemeralContainer) else None
    if not name:
        return ""
    found = observed.container(name)
    if found is None:
        raise ConfigError(f"unable to find target container {name}")
    return found.id


def _image_volumes(container: AnyContainer, images: Mapping[str, str | ImageError]) -> dict[str, str]:
    refs: dict[str, str] = {}
    for mount in container.volume_mounts or ():
        found = images.get(mount.name or "")
        if isinstance(found, ImageError):
            raise found
        if found is not None:
            refs[mount.name or ""] = found
    return refs
