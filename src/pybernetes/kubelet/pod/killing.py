"""Ends containers and pods: preStop hook, the stop signal, the grace period, sidecars last."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Pod, Probe
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, EventRecorder
from pybernetes.client.keys import key_of, uid_of
from pybernetes.component import klog
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from .. import events
from ..container.hooks import HookFailed, Hooks
from ..runtime.types import ObservedContainer, ObservedPod, find_container
from .actions import LIVENESS_PROBE, STARTUP_PROBE, UNKNOWN
from .termination_order import TerminationOrder

MINIMUM_GRACE: Final = 2
"""Seconds that every container gets to end by itself; upstream's."""
log = logging.getLogger(__name__)


class KillFailed(Exception):
    """Something of a pod could not be stopped; try again."""


class Killer:
    """Stops containers in the runtime, and tells."""

    def __init__(self, runtime: Runtime, hooks: Hooks, recorder: EventRecorder, clock: Clock) -> None:
        self._runtime = runtime
        self._hooks = hooks
        self._recorder = recorder
        self._clock = clock

    async def kill_pod(self, pod: Pod, observed: ObservedPod, grace: int | None = None) -> None:
        """Stop all containers, side by side, then all sandboxes. `grace` overrides what the pod says."""
        running = [each for each in observed.containers if each.running or each.state == "unknown"]
        order = None
        if any(is_sidecar(each) for each in (pod.spec.init_containers if pod.spec else None) or ()):
            order = TerminationOrder(pod, [each.name for each in running])
        outcomes = await asyncio.gather(
            *(self.kill_container(pod, each, observed, grace=grace, order=order) for each in running),
            return_exceptions=True,
        )
        problems = [_problem(each) for each in outcomes if each is not None]
        stopped = await asyncio.gather(
            *(self._stop_sandbox(each.id) for each in observed.sandboxes), return_exceptions=True
        )
        problems += [_problem(each) for each in stopped if each is not None]
        if problems:
            raise KillFailed(", ".join(problems))

    async def kill_container(
        self,
        pod: Pod,
        found: ObservedContainer,
        observed: ObservedPod,
        message: str = "",
        reason: str = UNKNOWN,
        *,
        grace: int | None = None,
        order: TerminationOrder | None = None,
    ) -> None:
        """Stop a container. Raises CRIError if the runtime cannot."""
        container = find_container(pod, found.name)
        if container is None:
            # The pod does not know it: nothing to be gentle about.
            await self._stop(found.id, MINIMUM_GRACE)
            return
        self._event(pod, found.name, NORMAL, events.KILLING, message or f"Stopping container {found.name}")
        seconds = grace_period(pod, container, reason) if grace is None else grace
        about = {"pod": key_of(pod), "podUID": uid_of(pod), "containerName": found.name, "containerID": found.id}
        if grace is not None:
            klog.info(log, 3, "Killing container with a grace period override", **about, gracePeriod=grace)
        deadline = self._clock.monotonic() + seconds
        handler = container.lifecycle.pre_stop if container.lifecycle else None
        if handler is not None and seconds > 0 and found.running:
            ip = observed.ips[0] if observed.ips else ""
            await self._within(deadline, self._pre_stop(pod, container, found.id, handler, ip))
        if order is not None and seconds > 0:
            await self._within(deadline, order.wait_for_turn(found.name))
        # Whole seconds are what the runtime takes; what was begun of one is the container's.
        left = -int(-(deadline - self._clock.monotonic()) // 1)
        klog.info(log, 2, "Killing container with a grace period", **about, gracePeriod=max(left, MINIMUM_GRACE))
        await self._stop(found.id, max(left, MINIMUM_GRACE))
        klog.info(log, 3, "Container exited normally", **about)
        if order is not None:
            order.has_ended(found.name)

    async def _pre_stop(self, pod: Pod, container: AnyContainer, id: str, handler: object, ip: str) -> None:
        try:
            await self._hooks.run(pod, container, id, handler, ip)  # type: ignore[arg-type]
        except HookFailed as error:
            about = {"pod": key_of(pod), "podUID": uid_of(pod), "containerName": container.name, "containerID": id}
            klog.error(log, error, "PreStop hook failed", **about)
            # The text may contain the response of the hook's server, which must not become public.
            self._event(pod, container.name or "", WARNING, events.FAILED_PRE_STOP_HOOK, "PreStopHook failed")

    async def _within(self, deadline: float, work: object) -> None:
        """Do it, but no longer than until the deadline."""
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        timer = self._clock.call_later(max(0.0, deadline - self._clock.monotonic()), task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
        finally:
            timer.cancel()
            task.cancel()

    async def _stop(self, id: str, seconds: int) -> None:
        try:
            await self._runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=seconds))
        except CRIError as error:
            if not error.not_found:
                raise

    async def _stop_sandbox(self, id: str) -> None:
        try:
            await self._runtime.stop_pod_sandbox(cri.StopPodSandboxRequest(pod_sandbox_id=id))
        except CRIError as error:
            if not error.not_found:
                raise

    def _event(self, pod: Pod, container: str, type: str, reason: str, message: str) -> None:
        self._recorder.event(events.container_reference(pod, container), type, reason, message)


def grace_period(pod: Pod, container: AnyContainer, reason: str) -> int:
    """The seconds a container gets to end: of the deletion, else of the probe that condemned it, else the pod's."""
    assert pod.metadata is not None
    assert pod.spec is not None
    if pod.metadata.deletion_grace_period_seconds is not None:
        return pod.metadata.deletion_grace_period_seconds
    if pod.spec.termination_grace_period_seconds is None:
        return MINIMUM_GRACE
    probe: Probe | None = None
    if reason == STARTUP_PROBE:
        probe = container.startup_probe
    elif reason == LIVENESS_PROBE:
        probe = container.liveness_probe
    if probe is not None and probe.termination_grace_period_seconds is not None:
        return probe.termination_grace_period_seconds
    return pod.spec.termination_grace_period_seconds


def _problem(outcome: object) -> str:
    if isinstance(outcome, CRIError):
        return str(outcome)
    assert isinstance(outcome, BaseException)
    raise outcome
