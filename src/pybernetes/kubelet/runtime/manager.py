"""Carries out what `compute_pod_actions` says, over CRI."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import EphemeralContainer, Pod, Secret
from pybernetes.api.times import format_duration
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, EventRecorder
from pybernetes.client.keys import key_of
from pybernetes.component import klog
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from .. import events
from ..backoff import BackOff
from ..container.config import ConfigBuilder
from ..container.config_error import ConfigError
from ..container.hash import hash_container
from ..container.starter import Sandbox, Starter, StartFailed
from ..images.manager import ImageError, ImageManager
from ..metrics.kubelet import KubeletMetrics
from ..pod.actions import RESTARTING_ALL, PodActions
from ..pod.killing import Killer, KillFailed
from ..status.container_status import StartFailure
from ..volumes.base import Volumes
from .pod_observer import Observing
from .types import ContainerState, ObservedPod, ObservedSandbox, full_name

CRASH_LOOP_BACK_OFF: Final = "CrashLoopBackOff"
log = logging.getLogger(__name__)

RuntimeHandler = Callable[[Pod], Awaitable[str]]
"""The runtime handler of a pod's RuntimeClass; LookupError with upstream's words if there is no such class."""


class SyncFailed(Exception):
    """The pod could not be brought to the state that it should be in; try again."""


@dataclass(slots=True)
class SyncResult:
    """The result of a sync."""

    failures: dict[str, StartFailure] = field(default_factory=dict)
    """Containers that could not be started, and why."""
    started: dict[str, str] = field(default_factory=dict)
    """The ids of containers that were started, by name."""
    sandbox: ObservedSandbox | None = None
    """The sandbox that was made."""
    disturbed: bool = False
    """More was done, or tried, than to start what is in `sandbox` and `started`."""
    retry_after: float | None = None
    """Seconds until a container's back-off is over."""
    reset: bool = False
    """All containers were removed and shall start over at once."""

    def failed(self, name: str, reason: str, message: str, retry_after: float) -> None:
        """Note a failure."""
        self.failures[name] = StartFailure(reason, message)
        self.disturbed = True
        if retry_after and (self.retry_after is None or retry_after < self.retry_after):
            self.retry_after = retry_after


class RuntimeManager:
    """Makes pods what they should be. One call at a time for each pod."""

    def __init__(
        self,
        runtime: Runtime,
        configs: ConfigBuilder,
        images: ImageManager,
        starter: Starter,
        killer: Killer,
        recorder: EventRecorder,
        clock: Clock,
        backoff: BackOff,
        handler: RuntimeHandler,
        observing: Observing,
        metrics: KubeletMetrics,
    ) -> None:
        self._runtime = runtime
        self._configs = configs
        self._images = images
        self._starter = starter
        self._killer = killer
        self._recorder = recorder
        self._clock = clock
        self._backoff = backoff
        self._handler = handler
        self._observing = observing
        self._metrics = metrics
        self.image_volumes: Counter[str] = Counter()
        """Image volumes that were wanted, had, and could not be had."""

    async def sync(
        self,
        pod: Pod,
        observed: ObservedPod,
        actions: PodActions,
        *,
        volumes: Volumes,
        secrets: Sequence[Secret],
        cgroup_parent: str,
        pod_ips: Sequence[str],
        before_start: Callable[[ObservedPod], Awaitable[None]],
        sandbox_ready: Callable[[ObservedSandbox], None],
        stopping: Callable[[], bool],
    ) -> SyncResult:
        """Do it. Raises `SyncFailed` if it could not be begun; what containers could not be started is in the result.

        `before_start` gets what is left of the pod when all is killed that must be. `stopping` says that the pod shall
        end, so that nothing more need be started.
        """
        result = SyncResult()
        if actions.create_sandbox and not observed.sandboxes:
            klog.info(log, 2, "No sandbox for pod can be found. Need to start a new one", pod=key_of(pod))
        if actions.create_sandbox and not actions.sandbox_id:
            klog.info(log, 4, "SyncPod received new pod, will create a sandbox for it", pod=key_of(pod))
        await self._kill(pod, observed, actions, result)
        await self._prune_init(pod, observed, result, all=actions.kill_pod and actions.create_sandbox)
        if not actions.kill_pod or actions.create_sandbox:
            await before_start(_left(observed, actions))
        if not (actions.create_sandbox or actions.init_to_start or actions.to_start or actions.ephemeral_to_start):
            return result
        try:
            handler = await self._handler(pod)
            config = await self._configs.sandbox(pod, actions.attempt, cgroup_parent=cgroup_parent)
        except (ConfigError, LookupError) as error:
            if actions.create_sandbox:
                self._sandbox_event(pod, f"Failed to create pod sandbox: {error}")
            raise SyncFailed(f"GeneratePodSandboxConfig for pod {full_name(pod)} failed: {error}") from error
        sandbox = Sandbox(actions.sandbox_id, config, pod_ips, handler, volumes, secrets)
        if actions.create_sandbox:
            if stopping():
                return result
            result.sandbox = await self._create_sandbox(pod, sandbox, actions, stopping)
            sandbox_ready(result.sandbox)
        sandbox.image_volumes = await self._image_volumes(pod, sandbox)
        await self._start_all(pod, observed, actions, sandbox, result, stopping)
        return result

    async def remove_container(self, id: str) -> None:
        """Remove a container that does not run."""
        await self._runtime.remove_container(cri.RemoveContainerRequest(container_id=id))

    async def _kill(self, pod: Pod, observed: ObservedPod, actions: PodActions, result: SyncResult) -> None:
        try:
            if actions.kill_pod:
                after = "will start new one" if actions.create_sandbox else "because all other containers are dead"
                if observed.sandboxes:
                    klog.info(log, 4, f"Stopping PodSandbox for pod, {after}", pod=key_of(pod))
                if actions.create_sandbox and actions.sandbox_id:
                    message = "Pod sandbox changed, it will be killed and re-created."
                    self._recorder.event(pod, NORMAL, "SandboxChanged", message)
                result.disturbed = bool(observed.sandboxes or observed.containers)
                await self._killer.kill_pod(pod, observed)
                return
            result.disturbed = bool(actions.to_kill or actions.to_reset)
            for kill in actions.to_kill.values():
                await self._killer.kill_container(pod, kill.container, observed, kill.message, kill.reason)
            for found in actions.to_reset:
                if not found.exited:
                    await self._killer.kill_container(pod, found, observed, "killing", RESTARTING_ALL, grace=0)
                await self.remove_container(found.id)
                result.reset = True
        except (CRIError, KillFailed) as error:
            raise SyncFailed(f"failed to kill containers of pod {full_name(pod)}: {error}") from error

    async def _prune_init(self, pod: Pod, observed: ObservedPod, result: SyncResult, *, all: bool) -> None:
        """Of each init container only the last run is kept; with a new sandbox, none."""
        assert pod.spec is not None
        for container in pod.spec.init_containers or ():
            done = [
                each
                for each in observed.containers
                if each.name == container.name
                and (all or each.state in (ContainerState.EXITED, ContainerState.UNKNOWN))
            ]
            for each in done if all else done[1:]:
                result.disturbed = True
                try:
                    await self.remove_container(each.id)
                except CRIError as error:
                    log.info("init container %s of %s stays for now: %s", each.name, full_name(pod), error)

    async def _create_sandbox(
        self, pod: Pod, sandbox: Sandbox, actions: PodActions, stopping: Callable[[], bool]
    ) -> ObservedSandbox:
        self._metrics.started_pods.inc()
        klog.info(log, 4, "Creating PodSandbox for pod", pod=key_of(pod))
        if sandbox.handler:
            klog.info(log, 2, "Running pod with runtime handler", pod=key_of(pod), runtimeHandler=sandbox.handler)
        try:
            answer = await self._runtime.run_pod_sandbox(
                cri.RunPodSandboxRequest(config=sandbox.config, runtime_handler=sandbox.handler)
            )
            sandbox.id = answer.pod_sandbox_id
            klog.info(log, 4, "Created PodSandbox for pod", podSandboxID=sandbox.id, pod=key_of(pod))
        except CRIError as error:
            if not stopping():
                klog.error(log, error, "CreatePodSandbox for pod failed", pod=key_of(pod))
                self._metrics.started_pods_errors.inc()
                self._sandbox_event(pod, f"Failed to create pod sandbox: {error}")
            raise SyncFailed(f'failed to "CreatePodSandbox" for "{full_name(pod)}": {error}') from error
        try:
            status = await self._runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id))
        except CRIError as error:
            self._recorder.event(pod, WARNING, "FailedPodSandBoxStatus", f"Unable to get pod sandbox status: {error}")
            raise SyncFailed(str(error)) from error
        assert pod.spec is not None
        made = self._observing.learn(status.status)
        if not pod.spec.host_network:
            sandbox.ips = made.ips
        actions.sandbox_id = sandbox.id
        return made

    async def _image_volumes(self, pod: Pod, sandbox: Sandbox) -> dict[str, str | ImageError]:
        assert pod.spec is not None
        found: dict[str, str | ImageError] = {}
        for volume in pod.spec.volumes or ():
            if volume.image is None:
                continue
            self.image_volumes["requested_total"] += 1
            reference = volume.image.reference or ""
            policy = volume.image.pull_policy or "IfNotPresent"
            about = events.container_reference(pod, "")
            about.field_path = None
            try:
                image = await self._images.ensure_image(
                    pod, reference, policy, about, sandbox.secrets, sandbox.config, sandbox.handler
                )
                found[volume.name or ""] = image.ref
                self.image_volumes["mounted_succeed_total"] += 1
            except ImageError as error:
                self.image_volumes["mounted_errors_total"] += 1
                found[volume.name or ""] = error
        return found

    async def _start_all(
        self,
        pod: Pod,
        observed: ObservedPod,
        actions: PodActions,
        sandbox: Sandbox,
        result: SyncResult,
        stopping: Callable[[], bool],
    ) -> None:
        for each in actions.ephemeral_to_start:
            await self._start(pod, each, observed, sandbox, result)
        for container in actions.init_to_start:
            if stopping():
                return
            if not await self._start(pod, container, observed, sandbox, result) and not is_sidecar(container):
                return
        for container in actions.to_start:
            if stopping():
                return
            await self._start(pod, container, observed, sandbox, result)

    async def _start(
        self, pod: Pod, container: AnyContainer, observed: ObservedPod, sandbox: Sandbox, result: SyncResult
    ) -> bool:
        name = container.name or ""
        try:
            self._check_backoff(pod, container, observed)
            self._metrics.started_containers.inc(_kind(pod, container))
            kind = _kind(pod, container).replace("_", " ")
            klog.info(log, 4, "Creating container in pod", containerType=kind, container=name, pod=key_of(pod))
            result.started[name] = await self._starter.start(pod, container, sandbox, observed)
        except StartFailed as error:
            self._metrics.started_containers_errors.inc(_kind(pod, container), error.reason)
            klog.info(
                log,
                3,
                "Container start failed in pod",
                containerType=_kind(pod, container).replace("_", " "),
                container=name,
                pod=key_of(pod),
                containerMessage=error.message,
                err=error.reason,
            )
            result.failed(name, error.reason, error.message, error.retry_after)
            return False
        return True

    def _check_backoff(self, pod: Pod, container: AnyContainer, observed: ObservedPod) -> None:
        """A container that has ended waits before it starts again: longer each time."""
        last = next((each for each in observed.containers if each.name == container.name and each.exited), None)
        if last is None:
            return
        key = backoff_key(pod, container)
        if self._backoff.is_waiting(key, last.finished_at):
            reference = events.container_reference(pod, container.name or "")
            text = f"Back-off restarting failed container {container.name} in pod {full_name(pod)}"
            self._recorder.event(reference, WARNING, events.BACK_OFF, text)
            delay = self._backoff.delay(key)
            message = (
                f"back-off {format_duration(int(delay * 1e9))} restarting failed container={container.name} "
                f"pod={full_name(pod)}"
            )
            left = max(0.001, last.finished_at + delay - self._clock.now())
            raise StartFailed(CRASH_LOOP_BACK_OFF, message, left)
        self._backoff.next(key, last.finished_at)

    def _sandbox_event(self, pod: Pod, message: str) -> None:
        self._recorder.event(pod, WARNING, "FailedCreatePodSandBox", message)


def _left(observed: ObservedPod, actions: PodActions) -> ObservedPod:
    """A pod without what is killed."""
    if actions.kill_pod:
        return ObservedPod(observed.ref)
    gone = actions.to_kill.keys() | {each.id for each in actions.to_reset}
    return replace(observed, containers=tuple(each for each in observed.containers if each.id not in gone))


def _kind(pod: Pod, container: AnyContainer) -> str:
    """How metrics call this sort of container."""
    if isinstance(container, EphemeralContainer):
        return "ephemeral_container"
    assert pod.spec is not None
    return "init_container" if any(each is container for each in pod.spec.init_containers or ()) else "container"


def backoff_key(pod: Pod, container: AnyContainer) -> str:
    """By what a container's failures are counted: another spec is another chance."""
    assert pod.metadata is not None
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}_{metadata.uid}_{container.name}_{hash_container(container)}"
