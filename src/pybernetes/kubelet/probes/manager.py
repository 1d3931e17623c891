"""Keeps a worker for each probe of each pod's containers, and says what their results mean for a pod's status.

The kubelet's worker of a pod calls `update_pod_status` for every status that it makes, which is also how probes learn
of containers that have started, stopped or been replaced: nothing here polls. A readiness probe asks in the moment in
which its container is seen running or started, and then once a period.
"""

from __future__ import annotations

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Container, ContainerStatus, Pod, PodSpec, PodStatus
from pybernetes.api.times import parse_time
from pybernetes.client.clock import Clock
from pybernetes.client.keys import uid_of
from pybernetes.client.metrics import Registry

from .prober import Prober
from .probing import Probing, restart_grace
from .results import Changed, ProbeType, Result, Results
from .worker import ProberMetrics, ProbeWorker

_Key = tuple[str, str, ProbeType]


class ProbeManager:
    """All probes of a node.

    `changed` is called for each new result, from the event loop: the pod's worker should then sync the pod. A container
    has to be killed and restarted when `liveness.get(id)` or `startup.get(id)` is `Result.FAILURE`.
    """

    def __init__(self, prober: Prober, clock: Clock, changed: Changed, metrics: Registry | None = None) -> None:
        self.liveness = Results(ProbeType.LIVENESS, changed)
        self.readiness = Results(ProbeType.READINESS, changed)
        self.startup = Results(ProbeType.STARTUP, changed)
        self.metrics = metrics or Registry()
        self._prober = prober
        self._clock = clock
        self._started_at = clock.now()
        self._measures = ProberMetrics(self.metrics)
        self._workers: dict[_Key, ProbeWorker] = {}

    def add_pod(self, pod: Pod) -> None:
        """Begin to probe a pod; nothing for probes that there are already. Call before its first status is made."""
        uid = uid_of(pod)
        for container in _probed(pod):
            for type, spec, results in (
                (ProbeType.STARTUP, container.startup_probe, self.startup),
                (ProbeType.READINESS, container.readiness_probe, self.readiness),
                (ProbeType.LIVENESS, container.liveness_probe, self.liveness),
            ):
                key = (uid, container.name or "", type)
                if spec is None or key in self._workers:
                    continue
                probing = Probing(type, pod, container, spec, results, self._started_at)
                worker = ProbeWorker(probing, self._prober, self._clock, self._measures)
                self._workers[key] = worker
                worker.start()

    def stop_liveness_and_startup(self, uid: str) -> None:
        """The pod is being ended: it shall not be disturbed by restarts. Readiness is still asked for."""
        self._stop([key for key in self._workers if key[0] == uid and key[2] is not ProbeType.READINESS])

    def remove_pod(self, uid: str) -> None:
        """Forget a pod."""
        self._stop([key for key in self._workers if key[0] == uid])

    def cleanup_pods(self, desired: set[str]) -> None:
        """Forget all pods but those with these uids."""
        self._stop([key for key in self._workers if key[0] not in desired])

    def close(self) -> None:
        """End all workers."""
        self._stop(list(self._workers))

    def update_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Fill in `started` and `ready` of the status's containers, and let the pod's probes see the status.

        A container that ran already in the last status should come with the `started` that it had there, so that a
        kubelet's restart does not make it unstarted.
        """
        containers = {each.name: each for each in _all(pod)}
        for each in status.container_statuses or ():
            self._judge(pod, each, containers.get(each.name))
        sidecars = {each.name for each in _probed(pod)}
        for each in status.init_container_statuses or ():
            if each.name in sidecars:
                self._judge(pod, each, containers.get(each.name))
                continue
            each.started = self._is_started(pod, each)
            terminated = each.state.terminated if each.state else None
            if terminated is not None and not terminated.exit_code:
                each.ready = True
        uid = uid_of(pod)
        for key, worker in self._workers.items():
            if key[0] == uid:
                worker.see(status)

    def _judge(self, pod: Pod, status: ContainerStatus, container: Container | None) -> None:
        status.started = self._is_started(pod, status)
        if status.started:
            status.ready = self._is_ready(pod, status, container)

    def _is_started(self, pod: Pod, status: ContainerStatus) -> bool:
        if status.state is None or status.state.running is None:
            return False
        result = self.startup.get(status.container_id or "")
        if result is not None:
            return result is Result.SUCCESS
        return bool(status.started) or (uid_of(pod), status.name or "", ProbeType.STARTUP) not in self._workers

    def _is_ready(self, pod: Pod, status: ContainerStatus, container: Container | None) -> bool:
        result = self.readiness.get(status.container_id or "")
        if result is Result.SUCCESS:
            return True
        ready = (uid_of(pod), status.name or "", ProbeType.READINESS) not in self._workers
        # A container that ran before this kubelet began was judged by the last one: that stands until a probe has run.
        if container is None or not restart_grace(_started_at(status), self._started_at):
            return ready
        if result is None:
            ready = True
        return ready and (container.readiness_probe is None or _pod_is_ready(pod))

    def _stop(self, keys: list[_Key]) -> None:
        for key in keys:
            self._workers.pop(key).stop()


def _all(pod: Pod) -> list[Container]:
    spec = pod.spec or PodSpec()
    return [*(spec.containers or ()), *(spec.init_containers or ())]


def _probed(pod: Pod) -> list[Container]:
    spec = pod.spec or PodSpec()
    return [*(spec.containers or ()), *(each for each in spec.init_containers or () if is_sidecar(each))]


def _started_at(status: ContainerStatus) -> float:
    running = status.state.running if status.state else None
    return parse_time(running.started_at) if running is not None and running.started_at else 0.0


def _pod_is_ready(pod: Pod) -> bool:
    conditions = pod.status.conditions if pod.status else None
    return any(each.type == "Ready" and each.status == "True" for each in conditions or ())
