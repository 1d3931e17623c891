"""The steps of a pod worker: everything from the first cgroup to the last trace, each step in its module."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.podrequests import pod_limits
from pybernetes.api.core.v1 import Pod, PodStatus, Secret
from pybernetes.api.times import parse_time
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, EventRecorder
from pybernetes.client.keys import copy, key_of
from pybernetes.component import klog, offload
from pybernetes.component.removal import remove_tree
from pybernetes.cri import v1 as cri
from pybernetes.cri.mounting import mounts, unmount
from pybernetes.cri.remote import Runtime
from pybernetes.trace import recorder

from ..cgroups.manager import CgroupManager
from ..dra.claims import ClaimError
from ..images.manager import ImageManager
from ..probes.manager import ProbeManager
from ..probes.results import Result, Results
from ..runtime.manager import RuntimeManager, SyncResult
from ..runtime.pleg import PLEG
from ..runtime.types import ObservedPod, ObservedSandbox, PodRef, replace
from ..status.container_status import StartFailure
from ..status.manager import StatusManager
from ..status.phase import PENDING, RUNNING, is_terminal
from ..status.pod_status import StatusFacts, generate_status
from ..volumes.base import VolumeError, Volumes
from ..volumes.manager import VolumeManager
from ..watched_objects import Objects
from . import active_deadline
from .actions import RESIZE, KeepAsItIs, PodActions, Verdicts, compute_pod_actions
from .critical import is_static
from .killing import Killer, KillFailed
from .mirrors import Mirrors
from .restarts import should_restart_all
from .restored import restored_pod
from .workers import SKIPPING, PodWork, RetryLater

RETRY: Final = 10.0
"""Seconds, and up to half as many more, until a container that could not be started is tried again; upstream's."""
NETWORK_RETRY: Final = 1.0
MAKE_WITHIN: Final = 10.0
"""Seconds to make a pod's folders; the pod may have mounted something on them."""
REMOVE_WITHIN: Final = 60.0
"""Seconds for the removal of a pod's logs, which may be long."""
PREDECESSOR_RETRY: Final = 0.2
NOT_ENFORCED: Final = "this node has no cgroups (cgroupsPerQOS: false): limits of CPU and memory have no effect"
log = logging.getLogger(__name__)

Facts = Callable[[Pod], StatusFacts]


@dataclass(slots=True)
class Parts:
    """The parts of the kubelet that the syncer uses."""

    runtime: Runtime
    runtime_manager: RuntimeManager
    pleg: PLEG
    statuses: StatusManager
    probes: ProbeManager
    volumes: VolumeManager
    cgroups: CgroupManager
    objects: Objects
    images: ImageManager
    killer: Killer
    mirrors: Mirrors
    recorder: EventRecorder
    clock: Clock
    facts: Facts
    """The node's parts of a status."""
    predecessor: Callable[[PodWork], PodWork | None]
    """Another pod of the same name that has not ended."""
    network_problem: Callable[[], str]
    """Why the network of pods is not ready; empty if it is."""
    allocated: Callable[[Pod], Pod]
    """The pod with the resources that it has been given."""
    keep_as_it_is: Callable[[Pod, ObservedPod], KeepAsItIs | None]
    resize: Callable[[Pod, ObservedPod, bool], Awaitable[None]]
    """Changes resources in place, if they are to be; the last: whether containers are just restarted for theirs."""
    exclusive_cpus: Callable[[str], bool]
    prepare_claims: Callable[[Pod], Awaitable[None]]
    """Has the devices of the pod's ResourceClaims prepared before its sandbox is made; raises `ClaimError`."""
    unprepare_claims: Callable[[str], Awaitable[None]]
    """Has them unprepared when nothing of the pod (by uid) runs any more; raises `ClaimError`."""
    released: Callable[[str], None]
    """A pod needs nothing of the node any more (devices, CPUs)."""
    first_running: Callable[[Pod, float], None]
    """A pod runs for the first time, so many seconds after its creation."""
    reported: Callable[[PodStatus, PodStatus], None]
    """There is a new status: (the one before, the new one)."""
    pods_dir: Path
    logs_dir: Path
    container_logs_dir: Path | None


class KubeletPodSyncer:
    """Does the work for pods (`pod.workers.PodSyncer`)."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._failures: dict[str, dict[str, StartFailure]] = {}
        """Why containers could not be started, by pod and name."""
        self._verdicts = Verdicts(self._verdict(parts.probes.liveness), self._verdict(parts.probes.startup))
        self._deadlines: set[str] = set()
        """Pods whose exceeded deadline has been reported."""
        self._ending: dict[str, PodWork] = {}
        """Pods whose containers are being ended: that may take as long as their grace period."""
        self._with_folders: set[str] = set()
        """Pods whose folders have been made since this kubelet began."""

    # -- living

    async def sync(self, work: PodWork) -> tuple[bool, float | None]:
        """Bring a pod to where it should be."""
        parts, uid = self._parts, work.ref.uid
        assert work.pod is not None
        pod = parts.allocated(work.pod)
        assert pod.spec is not None
        klog.info(log, 4, "SyncPod enter", pod=key_of(pod), podUID=uid)
        ended, delay = await self._sync(work, pod)
        klog.info(log, 4, "SyncPod exit", pod=key_of(pod), podUID=uid, isTerminal=ended)
        return ended, delay

    async def _sync(self, work: PodWork, pod: Pod) -> tuple[bool, float | None]:
        parts, uid = self._parts, work.ref.uid
        assert pod.spec is not None
        if is_static(pod) and parts.predecessor(work):
            raise RetryLater(PREDECESSOR_RETRY)  # a changed file: its pod has the ports and the name of the old one
        parts.probes.add_pod(pod)
        new = not work.touched and parts.pleg.never_seen(uid)
        observed = ObservedPod(work.ref) if new else await parts.pleg.refresh(work.ref)
        status = self._report(pod, observed)
        if is_terminal(status.phase):
            return True, None
        problem = parts.network_problem()
        if problem and not pod.spec.host_network:
            parts.recorder.event(pod, WARNING, "NetworkNotReady", f"network is not ready: {problem}")
            raise RetryLater(NETWORK_RETRY)
        parts.objects.register(pod)
        unused = not (observed.sandboxes or observed.containers)
        cgroup_parent = parts.cgroups.ensure(pod, exclusive=parts.exclusive_cpus(uid), unused=unused)
        if new and not parts.cgroups.enforced and pod_limits(pod, use_status=False):
            parts.recorder.event(pod, WARNING, "LimitsNotEnforced", NOT_ENFORCED)
        if is_static(pod):
            await parts.mirrors.ensure(pod)
        if new:
            recorder.mark("cgroups ready")
        with recorder.child("volumes") as span:
            volumes = await self._volumes(work, pod)
            span.discard_if_quick()
        actions = self._actions(pod, observed, status)
        if actions.nothing:
            await parts.resize(pod, observed, False)
            return False, self._deadline(pod, status, None)
        restarting = any(each.reason == RESIZE for each in actions.to_kill.values())
        before = observed

        def sandbox_ready(made: ObservedSandbox) -> None:
            if not before.containers:  # else they were killed just now, and what is known of them is not true any more
                self._report(pod, replace(before, sandboxes=(made, *before.sandboxes)))

        if actions.create_sandbox and not work.stopping:
            await self._prepare_claims(pod)
        work.touched = True
        result = await parts.runtime_manager.sync(
            pod,
            observed,
            actions,
            volumes=volumes,
            secrets=await self._secrets(pod),
            cgroup_parent=cgroup_parent,
            pod_ips=[each.ip or "" for each in status.pod_ips or ()],
            before_start=lambda left: parts.resize(pod, left, restarting),
            sandbox_ready=sandbox_ready,
            stopping=lambda: work.stopping,
        )
        self._note(work.ref, result)
        if result.disturbed:
            observed = await parts.pleg.refresh(work.ref)
        else:
            observed = await parts.pleg.started(before, result.sandbox, result.started.values())
        status = self._report(pod, observed)
        if is_terminal(status.phase):
            return True, None
        again = self._again(result)
        if again is None and result.started and not self._actions(pod, observed, status).nothing:
            again = 0.0  # a started sidecar lets the next container start, and no event will follow
        return False, self._deadline(pod, status, again)

    async def _prepare_claims(self, pod: Pod) -> None:
        try:
            await self._parts.prepare_claims(pod)
        except ClaimError as error:
            message = f"Failed to prepare dynamic resources: {error}"
            self._parts.recorder.event(pod, WARNING, "FailedPrepareDynamicResources", message)
            klog.error(log, error, "Failed to prepare dynamic resources", pod=key_of(pod))
            raise

    def _actions(self, pod: Pod, observed: ObservedPod, status: PodStatus) -> PodActions:
        return compute_pod_actions(
            pod,
            observed,
            self._verdicts,
            restart_all=should_restart_all(pod, observed, status),
            keep_as_it_is=self._parts.keep_as_it_is(pod, observed),
        )

    def _again(self, result: SyncResult) -> float | None:
        """When a sync with this result is to be repeated, if nothing else happens."""
        if result.reset:
            return 0.0
        if not result.failures:
            return None
        return result.retry_after or RETRY * (1 + random.random() / 2)

    def _deadline(self, pod: Pod, status: PodStatus, delay: float | None) -> float | None:
        left = active_deadline.seconds_left(pod, status, self._parts.clock.now())
        if left is None:
            return delay
        return max(0.0, left) if delay is None else min(delay, max(0.0, left))

    async def _volumes(self, work: PodWork, pod: Pod) -> Volumes:
        parts = self._parts
        uid = work.ref.uid
        try:
            if uid not in self._with_folders:
                await offload.run(f"pod {uid}", MAKE_WITHIN, _make_folders, parts.pods_dir / uid)
                self._with_folders.add(uid)
        except OSError as error:
            message = f"error making pod data directories: {error}"
            parts.recorder.event(pod, WARNING, "FailedToMakePodDataDirectories", message)
            raise
        try:
            klog.info(log, 3, "Waiting for volumes to attach and mount for pod", pod=key_of(pod))
            found = await parts.volumes.ensure(pod)
            klog.info(log, 3, "All volumes are attached and mounted for pod", pod=key_of(pod))
            return found
        except VolumeError as error:
            if not work.stopping:
                parts.recorder.event(pod, WARNING, error.reason, error.message)
            raise RetryLater(error.retry_after) from error

    async def _secrets(self, pod: Pod) -> Sequence[Secret]:
        """The pod's pull secrets; those that are missing may not be needed."""
        assert pod.spec is not None
        assert pod.metadata is not None
        found, missing = [], []
        for name in [each.name for each in pod.spec.image_pull_secrets or () if each.name]:
            try:
                found.append(await self._parts.objects.get(Secret, pod.metadata.namespace or "", name))
            except (errors.APIError, OSError, TimeoutError):
                missing.append(name)
        if missing:
            message = (
                f"Unable to retrieve some image pull secrets ({', '.join(missing)}); "
                "attempting to pull the image may not succeed."
            )
            self._parts.recorder.event(pod, WARNING, "FailedToRetrieveImagePullSecret", message)
        return found

    def _note(self, ref: PodRef, result: SyncResult) -> None:
        uid = ref.uid
        known = self._failures.setdefault(uid, {})
        for name in result.started:
            known.pop(name, None)
        known.update(result.failures)
        for name, each in result.failures.items():
            problem = f'failed to "StartContainer" for "{name}" with {each.reason}: {klog.quoted(each.message)}'
            klog.error(log, problem, SKIPPING, pod=ref, podUID=uid)
        if result.reset:
            known.clear()

    # -- reporting

    def _report(
        self, pod: Pod, observed: ObservedPod, *, terminal: bool = False, work: PodWork | None = None
    ) -> PodStatus:
        """Make the pod's status and note it."""
        parts = self._parts
        uid = observed.uid
        old = parts.statuses.get(uid) or pod.status or PodStatus()
        facts = parts.facts(pod)
        facts.failures = self._failures.get(uid, {})
        left = active_deadline.seconds_left(pod, old, parts.clock.now())
        if left is not None and left <= 0 and (uid in self._deadlines or not is_terminal(old.phase)):
            # Also when its containers have ended, and well: what it failed for stays.
            facts.eviction = active_deadline.EXCEEDED
            if uid not in self._deadlines:
                self._deadlines.add(uid)
                parts.recorder.event(pod, NORMAL, facts.eviction.reason, facts.eviction.message)
        status = generate_status(pod, observed, copy(old), facts, terminal=terminal)
        if work is not None and work.status_change is not None:
            work.status_change(status)
        if status.phase == RUNNING and old.phase == PENDING and pod.metadata and pod.metadata.creation_timestamp:
            parts.first_running(pod, parts.clock.now() - parse_time(pod.metadata.creation_timestamp))
        parts.reported(old, status)
        parts.statuses.set(pod, status)
        return status

    @staticmethod
    def _verdict(results: Results) -> Callable[[str], bool | None]:
        def verdict(id: str) -> bool | None:
            result = results.get(id)
            return None if result in (None, Result.UNKNOWN) else result is Result.SUCCESS

        return verdict

    # -- ending

    async def terminating(self, work: PodWork) -> None:
        """End all that runs of a pod."""
        parts = self._parts
        klog.info(log, 4, "SyncTerminatingPod enter", pod=work.ref, podUID=work.ref.uid)
        observed = await parts.pleg.refresh(work.ref)
        if work.pod is None or work.rejected:
            await parts.killer.kill_pod(restored_pod(observed), observed, work.grace)
            await parts.unprepare_claims(work.ref.uid)
            return
        pod = parts.allocated(work.pod)
        self._report(pod, observed, work=work)
        parts.probes.stop_liveness_and_startup(work.ref.uid)
        self._ending[work.ref.uid] = work
        try:
            await parts.killer.kill_pod(pod, observed, work.grace)
        except KillFailed as error:
            parts.recorder.event(pod, WARNING, "FailedKillPod", f"error killing pod: {error}")
            raise
        finally:
            self._ending.pop(work.ref.uid, None)
        parts.probes.remove_pod(work.ref.uid)
        observed = await parts.pleg.refresh(work.ref)
        running = [each.id for each in observed.running()]
        if running:
            raise KillFailed(f"detected running containers after a successful KillPod, CRI violation: {running}")
        # After the last container, and before the API server learns of the end and frees the devices.
        await parts.unprepare_claims(work.ref.uid)
        self._report(pod, observed, terminal=True, work=work)
        klog.info(log, 4, "Pod termination stopped all running containers", pod=work.ref, podUID=work.ref.uid)
        klog.info(log, 4, "SyncTerminatingPod exit", pod=work.ref, podUID=work.ref.uid)

    def probe_changed(self, uid: str) -> None:
        """Reports the readiness of a pod whose containers are being ended; its worker waits for them."""
        work, observed = self._ending.get(uid), self._parts.pleg.get(uid)
        if work is not None and work.pod is not None and observed is not None:
            self._report(self._parts.allocated(work.pod), observed, work=work)

    async def terminated(self, work: PodWork) -> None:
        """Give back all that the pod has on the node, and report its end."""
        parts, uid = self._parts, work.ref.uid
        klog.info(log, 4, "SyncTerminatedPod enter", pod=work.ref, podUID=uid)
        await parts.volumes.teardown(uid)
        parts.objects.unregister(uid)
        await parts.cgroups.remove(uid)
        parts.released(uid)
        self._failures.pop(uid, None)
        self._deadlines.discard(uid)
        self._with_folders.discard(uid)
        if work.pod is not None and work.rejected:
            parts.statuses.finish(work.pod)
        elif work.pod is not None:
            parts.statuses.terminate(parts.allocated(work.pod))
        parts.images.forget(uid)
        klog.info(log, 4, "SyncTerminatedPod exit", pod=work.ref, podUID=uid)

    async def cleanup(self, ref: PodRef) -> None:
        """Remove the last traces of a pod that its source does not have any more: sandbox, containers, logs."""
        parts = self._parts
        observed = await parts.pleg.refresh(ref)
        for sandbox in observed.sandboxes:
            await parts.runtime.remove_pod_sandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox.id))
        removed = {each.id for each in observed.sandboxes}
        links: list[Path] = []
        for container in observed.containers:
            klog.info(log, 4, "Removing container", containerID=container.id)
            if container.sandbox_id not in removed:  # else it went with its sandbox
                await parts.runtime.remove_container(cri.RemoveContainerRequest(container_id=container.id))
            if parts.container_logs_dir is not None:
                name = f"{ref.name}_{ref.namespace}_{container.name}-{container.id}.log"
                links.append(parts.container_logs_dir / name)
        logs = parts.logs_dir / f"{ref.namespace}_{ref.name}_{ref.uid}"
        await offload.run(f"logs of pod {ref.uid}", REMOVE_WITHIN, _remove_logs, logs, links)
        await parts.volumes.remove(ref.uid)
        parts.statuses.remove(ref.uid)
        await parts.mirrors.delete_orphans()


def _make_folders(folder: Path) -> None:
    (folder / "volumes").mkdir(parents=True, exist_ok=True)
    (folder / "plugins").mkdir(exist_ok=True)


def _remove_logs(folder: Path, links: Sequence[Path]) -> None:
    for each in links:
        each.unlink(missing_ok=True)
    # Mounted there by the pod itself, which has gone; to look at the folder could wait for what is mounted on it.
    place = folder.parent.resolve() / folder.name
    for mount in reversed(mounts(folder.parent)):
        if Path(mount.path).is_relative_to(place):
            unmount(mount.path, lazily=True)
    remove_tree(folder)
