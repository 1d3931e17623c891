"""A pod that only pretends to run. What to do is decided by the kubelet's own `compute_pod_actions`, what to report by
its `generate_status`; here is only the runtime that both believe in (and what probes and hooks would say, in
`probing.py` and `hooks.py`), and time is an argument.

Call `sync` when the pod has changed or the time it asked for has come: all that happens at once, happens at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podconditions import update_pod_condition
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import ContainerStatus, Pod, PodCondition, PodStatus
from pybernetes.api.times import format_duration, rfc3339
from pybernetes.client.events import NORMAL, WARNING

from .. import events
from ..backoff import BackOff
from ..container.hash import hash_container
from ..container.starter import POST_START_HOOK_ERROR
from ..pod.actions import FAILED_POST_START, PodActions, compute_pod_actions
from ..pod.active_deadline import EXCEEDED, seconds_left
from ..pod.killing import grace_period
from ..runtime.manager import CRASH_LOOP_BACK_OFF, backoff_key
from ..runtime.types import (
    ContainerState,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    PodRef,
    find_container,
    full_name,
)
from ..status.container_status import StartFailure
from ..status.phase import is_terminal
from ..status.pod_status import Eviction, StatusFacts, generate_status
from .behaviour import Rule, behaviour
from .ending import stops
from .hooks import hook
from .pod_probes import PodProbes
from .probing import refusal
from .references import Missing
from .restoring import new_id, restored
from .settings import NEVER, Behaviour
from .usage import killed_at

RUNTIME: Final = "simulated"
CREATE_CONTAINER_CONFIG_ERROR: Final = "CreateContainerConfigError"
KILLED: Final = 137
OOM_KILLED: Final = "OOMKilled"
_MOUNT_FIRST, _MOUNT_LONGEST = 0.5, 122.0
"""Seconds until volumes are tried again, the first time and at most; upstream's."""
_CONFIGURE_AGAIN: Final = 10.0
_ROUNDS: Final = 1000
"""Steps that may follow from each other at one moment: containers that end as soon as they start."""


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An event; about a container, if it is named."""

    type: str
    reason: str
    message: str
    container: str = ""


@dataclass(slots=True)
class Outcome:
    """The result of a sync."""

    status: PodStatus
    events: list[PodEvent] = field(default_factory=list)
    again_at: float | None = None
    """When something happens next."""
    images: list[str] = field(default_factory=list)
    """Those that containers were started from."""
    ended: bool = False
    """The pod was terminated, and has ended."""


@dataclass(slots=True)
class _End:
    """When and how a running container will end."""

    at: float
    exit_code: int
    reason: str
    terminated: bool = False


class SimulatedPod:
    """One pod."""

    def __init__(
        self, pod: Pod, rules: Sequence[Rule], backoff: BackOff, ips: Sequence[str], host_ips: Sequence[str]
    ) -> None:
        metadata = pod.metadata
        assert metadata is not None
        self.observed = ObservedPod(PodRef(metadata.uid or "", metadata.namespace or "", metadata.name or ""))
        self._rules = rules
        self._backoff = backoff
        self._ips = tuple(ips)
        self._host_ips = host_ips
        self._behaviours: dict[str, Behaviour] = {}
        self._problems: list[PodEvent] = []
        """Errors in the settings that have not been reported yet."""
        self._since = 0.0
        """When its settings changed last; nothing they cause may be dated before."""
        self._ends: dict[str, _End] = {}
        """By container id."""
        self._due: dict[str, float] = {}
        """By container name: when it will have started, and its hook be done."""
        self._probes = PodProbes(self.behaviour)
        self._failures: dict[str, StartFailure] = {}
        self._retries: dict[str, float] = {}
        self._eviction: Eviction | None = None
        self._disruption: PodCondition | None = None
        self._mounting = _MOUNT_FIRST
        self._mount_at = 0.0
        self._restarts: set[str] = set()
        self._events: list[PodEvent] = []
        self._images: list[str] = []
        self.observed = restored(pod, self.observed, self._ips)

    def behaviour(self, pod: Pod, container: str) -> Behaviour:
        """The behaviour of a container."""
        known = self._behaviours.get(container)
        if known is None:
            known, problems = behaviour(pod, container, self._rules)
            self._behaviours[container] = known
            self._problems += [PodEvent(WARNING, "BadSimulation", each, container) for each in problems]
        return known

    def reconsider(self, pod: Pod, rules: Sequence[Rule], now: float) -> bool:
        """Annotations or rules may be others; whether it has to behave in another way, beginning with the next sync."""
        self._rules = rules
        before, self._behaviours = self._behaviours, {}
        changed = {name for name, wanted in before.items() if self.behaviour(pod, name) != wanted}
        if not changed and not self._problems:
            return False
        self._since = now
        self._due = {name: at for name, at in self._due.items() if name not in changed}
        for each in self.observed.running():
            self._probes.change(each.id, self.behaviour(pod, each.name), now)
        return True

    @property
    def running(self) -> bool:
        """Whether any container runs."""
        return any(each.running for each in self.observed.containers)

    def evict(self, eviction: Eviction, condition: PodCondition | None = None) -> None:
        """The pod has to end, with the next sync."""
        if self._eviction is None:
            self._eviction, self._disruption = eviction, condition

    def restart(self, containers: Iterable[str]) -> None:
        """These are to be started anew, with the next sync."""
        self._restarts |= set(containers)

    def sync(
        self,
        pod: Pod,
        old: PodStatus,
        now: float,
        lacking: Missing | None = None,
        resize: Sequence[PodCondition] = (),
    ) -> Outcome:
        """Do what is due. `lacking`: what it waits for; `resize`: what there is to say about its resources."""
        assert pod.metadata is not None
        if self._disruption is not None:
            update_pod_condition(old, self._disruption, rfc3339(now))
        self._events, self._images = [], []
        self._retries = {}
        self._plan_ends(pod, now)
        self._let_end(now)
        left = seconds_left(pod, old, now)
        if left is None and not old.start_time and pod.spec is not None:
            left = pod.spec.active_deadline_seconds  # it starts now
        if left is not None and left <= 0 and self._eviction is None and not is_terminal(old.phase):
            self._eviction = EXCEEDED
            self._tell(NORMAL, EXCEEDED.reason, EXCEEDED.message)
        deleting = pod.metadata.deletion_timestamp is not None
        over = deleting or self._eviction is not None or is_terminal(old.phase)
        if over:
            self._probe(pod, now, ending=True)
            self._stop(pod, now)
        elif not self._waits_for_volumes(pod, lacking, now):
            self._go_on(pod, lacking, now)
        ended = over and not self.running
        if ended:
            self._drop_sandbox()
        self._events += self._problems
        self._problems = []
        facts = StatusFacts(
            runtime=RUNTIME,
            host_ips=self._host_ips,
            failures=self._failures,
            eviction=self._eviction,
            judge=lambda pod, status: self._judge(pod, status, now),
            resize=resize,
        )
        status = generate_status(pod, self.observed, old, facts, terminal=ended)
        moments = [*(each.at for each in self._ends.values()), *self._due.values(), *self._retries.values()]
        moments.append(self._probes.again_at(pod, self.observed, now, ending=over))
        if left is not None and left > 0 and not over:
            moments.append(now + left)
        again_at = min((each for each in moments if each < NEVER), default=None)
        return Outcome(status, self._events, again_at, self._images, ended and deleting)

    # -- going on

    def _waits_for_volumes(self, pod: Pod, lacking: Missing | None, now: float) -> bool:
        if lacking is None or not lacking.volumes or self.observed.sandbox is not None:
            return False
        if now >= self._mount_at:
            for volume, why in lacking.volumes.items():
                self._tell(WARNING, "FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {why}')
            self._mount_at = now + self._mounting
            self._mounting = min(self._mounting * 2, _MOUNT_LONGEST)
        self._retries[""] = self._mount_at
        return True

    def _go_on(self, pod: Pod, lacking: Missing | None, now: float) -> None:
        self._failures = {}
        lacks = lacking.containers if lacking else {}
        for _ in range(_ROUNDS):
            self._probe(pod, now)
            actions = compute_pod_actions(pod, self.observed, self._probes.verdicts(), keep_as_it_is=self._is_kept)
            self._restarts = set()
            changed = self._kill(pod, actions, now)
            if actions.create_sandbox:
                self._create_sandbox(pod, actions, now)
                changed = True
            to_start: list[AnyContainer] = [
                *actions.ephemeral_to_start,
                *actions.init_to_start,
                *actions.to_start,
            ]
            for container in to_start:
                name = container.name or ""
                if name in self._failures or self._is_ending(name):
                    continue
                if name in lacks:
                    self._fail_to_configure(name, lacks[name], now)
                    continue
                if self._start(pod, container, now):
                    changed = True
                elif container in actions.init_to_start:
                    break
            wanted = {each.name for each in to_start}
            self._due = {name: at for name, at in self._due.items() if name in wanted}
            if not changed:
                return

    def _is_kept(self, container: AnyContainer, found: ObservedContainer) -> bool:
        return container.name not in self._restarts

    def _is_ending(self, name: str) -> bool:
        """Whether it is terminating: its successor has to wait."""
        found = self.observed.container(name)
        end = self._ends.get(found.id) if found is not None and found.running else None
        return end is not None and end.terminated

    def _kill(self, pod: Pod, actions: PodActions, now: float) -> bool:
        if actions.kill_pod:
            changed = self.running or (self.observed.sandbox is not None and self.observed.sandbox.ready)
            for each in self.observed.running():
                self._tell(NORMAL, events.KILLING, f"Stopping container {each.name}", each.name)
                code, reason = (KILLED, "Error") if each.id in actions.to_kill else (0, "Completed")
                self._end(each, now, code, reason)
            self._drop_sandbox()
            return changed
        changed = False
        for kill in actions.to_kill.values():
            name = kill.container.name
            container = find_container(pod, name)
            if container is None or self._is_ending(name):
                continue
            self._tell(NORMAL, events.KILLING, kill.message, name)
            grace = grace_period(pod, container, kill.reason)
            stop = stops(pod, [kill.container], lambda each: self.behaviour(pod, each), grace, now)[kill.container.id]
            if stop.hook_fails:
                self._tell(WARNING, events.FAILED_PRE_STOP_HOOK, "PreStopHook failed", name)
            self._ends[kill.container.id] = _End(stop.at, KILLED, "Error", terminated=True)
            changed = changed or stop.at <= now
        self._let_end(now)
        return changed

    def _create_sandbox(self, pod: Pod, actions: PodActions, now: float) -> None:
        assert pod.spec is not None
        host = bool(pod.spec.host_network)
        made = ObservedSandbox(new_id(), True, now, actions.attempt, () if host else self._ips, host)
        self.observed = replace(self.observed, sandboxes=(made, *self.observed.sandboxes[:1]))

    def _start(self, pod: Pod, container: AnyContainer, now: float) -> bool:
        """Whether the container runs now, or has even ended again."""
        name = container.name or ""
        wanted = self.behaviour(pod, name)
        if self._backs_off(pod, container, now):
            return False
        if wanted.pull_for == NEVER:
            return self._fail_to_pull(pod, container, now)
        after = hook(container.lifecycle.post_start if container.lifecycle else None, wanted.post_start)
        if name not in self._due:
            if wanted.pull_for:
                self._tell(NORMAL, "Pulling", f'Pulling image "{container.image}"', name)
            self._due[name] = now + wanted.pull_for + wanted.start_after + (after.seconds if after else 0.0)
        if self._due[name] > now:
            return False
        done = self._due.pop(name)
        self._run(pod, container, wanted, done - (after.seconds if after else 0.0))
        if after is not None and after.fails:
            self._fail_after_start(name, done, now)
        self._let_end(now)
        return True

    def _run(self, pod: Pod, container: AnyContainer, wanted: Behaviour, at: float) -> None:
        name = container.name or ""
        before = self.observed.container(name)
        if before is not None:
            self._backoff.next(backoff_key(pod, container), before.finished_at)
        if wanted.pull_for:
            took = format_duration(int(wanted.pull_for * 1e9))
            text = f'Successfully pulled image "{container.image}" in {took} ({took} including waiting)'
        else:
            text = f'Container image "{container.image}" already present on machine'
        self._tell(NORMAL, "Pulled", text, name)
        self._tell(NORMAL, events.CREATED, "Container created", name)
        self._tell(NORMAL, events.STARTED, "Container started", name)
        self._images.append(container.image or "")
        sandbox = self.observed.sandbox
        assert sandbox is not None
        made = ObservedContainer(
            id=new_id(),
            name=name,
            state=ContainerState.RUNNING,
            image=container.image or "",
            image_id=_image_id(container.image or ""),
            image_ref=_image_id(container.image or ""),
            hash=hash_container(container),
            restart_count=before.restart_count + 1 if before is not None else 0,
            created_at=at,
            started_at=at,
            sandbox_id=sandbox.id,
        )
        others = [each for each in self.observed.containers if each.name != name]
        kept = [before] if before is not None else []
        self.observed = replace(self.observed, containers=(made, *kept, *others))
        self._plan_end(container, made, wanted, at)
        self._probes.begin(container, wanted, made.id, at)

    def _backs_off(self, pod: Pod, container: AnyContainer, now: float) -> bool:
        name = container.name or ""
        last = self.observed.container(name)
        key = backoff_key(pod, container)
        if last is None or not last.exited or not self._backoff.is_waiting(key, last.finished_at):
            return False
        delay = self._backoff.delay(key)
        self._tell(
            WARNING,
            events.BACK_OFF,
            f"Back-off restarting failed container {name} in pod {full_name(pod)}",
            name,
        )
        text = f"back-off {format_duration(int(delay * 1e9))} restarting failed container={name} pod={full_name(pod)}"
        self._failures[name] = StartFailure(CRASH_LOOP_BACK_OFF, text)
        self._retries[name] = max(now + 0.001, last.finished_at + delay)
        return True

    def _fail_after_start(self, name: str, at: float, now: float) -> None:
        """The container runs, but its hook does not come to a good end."""
        found = self.observed.container(name)
        assert found is not None
        self._tell(WARNING, events.FAILED_POST_START_HOOK, "PostStartHook failed", name)
        self._tell(NORMAL, events.KILLING, FAILED_POST_START, name)
        self._end(found, at, KILLED, "Error")
        self._failures[name] = StartFailure(POST_START_HOOK_ERROR, "simulated")
        self._retries[name] = now + _CONFIGURE_AGAIN

    def _fail_to_configure(self, name: str, why: str, now: float) -> None:
        self._tell(WARNING, events.FAILED, f"Error: {why}", name)
        self._failures[name] = StartFailure(CREATE_CONTAINER_CONFIG_ERROR, why)
        self._retries[name] = now + _CONFIGURE_AGAIN

    def _fail_to_pull(self, pod: Pod, container: AnyContainer, now: float) -> bool:
        name, image = container.name or "", container.image or ""
        key = f"{self.observed.uid}_{image}"
        if self._backoff.is_waiting_since_update(key):
            text = f'Back-off pulling image "{image}"'
            self._tell(NORMAL, events.BACK_OFF, text, name)
            self._failures[name] = StartFailure("ImagePullBackOff", text)
        else:
            why = f"simulated: {image}: not found"
            self._tell(NORMAL, "Pulling", f'Pulling image "{image}"', name)
            self._tell(WARNING, events.FAILED, f'Failed to pull image "{image}": {why}', name)
            self._tell(WARNING, events.FAILED, "Error: ErrImagePull", name)
            self._failures[name] = StartFailure("ErrImagePull", why)
            self._backoff.next(key, now)
        self._retries[name] = now + max(1.0, self._backoff.delay(key))
        return False

    # -- ending

    def _stop(self, pod: Pod, now: float) -> None:
        """All containers shall end, in their grace period."""
        assert pod.metadata is not None
        assert pod.spec is not None
        self._due, self._failures = {}, {}
        grace = pod.metadata.deletion_grace_period_seconds
        if grace is None:
            grace = pod.spec.termination_grace_period_seconds
        grace = 30 if grace is None else grace
        running = self.observed.running()
        planned = stops(pod, running, lambda name: self.behaviour(pod, name), grace, now)
        for each in running:
            end, stop = self._ends.get(each.id), planned[each.id]
            at = stop.at
            if end is not None and end.terminated:
                at = min(at, end.at)
            else:
                self._tell(NORMAL, events.KILLING, f"Stopping container {each.name}", each.name)
                if stop.hook_fails:
                    self._tell(WARNING, events.FAILED_PRE_STOP_HOOK, "PreStopHook failed", each.name)
            if end is None or end.terminated or at <= end.at:
                code, reason = (0, "Completed") if stop.in_time else (KILLED, "Error")
                self._ends[each.id] = _End(at, code, reason, terminated=True)
        self._let_end(now)

    def _plan_ends(self, pod: Pod, now: float) -> None:
        """When containers will end by themselves; limits may be others than before."""
        for each in self.observed.running():
            container, end = find_container(pod, each.name), self._ends.get(each.id)
            if container is not None and not (end is not None and end.terminated):
                self._plan_end(container, each, self.behaviour(pod, each.name), now)

    def _plan_end(self, container: AnyContainer, found: ObservedContainer, wanted: Behaviour, now: float) -> None:
        killed = killed_at(container, wanted, found, now)
        if killed is not None and killed < found.started_at + wanted.run_for:
            self._ends[found.id] = _End(killed, KILLED, OOM_KILLED)
        elif wanted.run_for < NEVER:
            at = max(found.started_at + wanted.run_for, min(self._since, now))
            self._ends[found.id] = _End(at, wanted.exit_code, wanted.reason)
        else:
            self._ends.pop(found.id, None)

    def _let_end(self, now: float) -> None:
        for each in self.observed.running():
            end = self._ends.get(each.id)
            if end is not None and end.at <= now:
                self._end(each, end.at, end.exit_code, end.reason)

    def _end(self, container: ObservedContainer, at: float, code: int, reason: str) -> None:
        ended = replace(container, state=ContainerState.EXITED, finished_at=at, exit_code=code, reason=reason)
        containers = tuple(ended if each.id == container.id else each for each in self.observed.containers)
        self.observed = replace(self.observed, containers=containers)
        self._ends.pop(container.id, None)

    def _drop_sandbox(self) -> None:
        sandboxes = tuple(replace(each, ready=False) for each in self.observed.sandboxes)
        self.observed = replace(self.observed, sandboxes=sandboxes)

    # -- telling

    def _tell(self, type: str, reason: str, message: str, container: str = "") -> None:
        self._events.append(PodEvent(type, reason, message, container))

    def _judge(self, pod: Pod, status: PodStatus, now: float) -> None:
        """Compute the results of probes."""
        sidecars = {each.name for each in (pod.spec and pod.spec.init_containers) or () if is_sidecar(each)}
        for each in status.container_statuses or ():
            self._judge_one(pod, each, now)
        for each in status.init_container_statuses or ():
            if each.name in sidecars:
                self._judge_one(pod, each, now)
            else:
                each.started = bool(each.state and each.state.running)
                ended = each.state.terminated if each.state else None
                each.ready = ended is not None and not ended.exit_code

    def _judge_one(self, pod: Pod, status: ContainerStatus, now: float) -> None:
        found = self.observed.container(status.name or "")
        running = found is not None and found.running and bool(status.state and status.state.running)
        status.started = running and found is not None and self._probes.started(found.id)
        status.ready = running and found is not None and self._probes.ready(pod, found, now)

    def _probe(self, pod: Pod, now: float, *, ending: bool = False) -> None:
        for container, asked in self._probes.ask(pod, self.observed, now, ending=ending):
            why = refusal(asked.spec, container, self._ips[0] if self._ips else "")
            self._tell(WARNING, events.UNHEALTHY, f"{asked.type} probe failed: {why}", container.name or "")


def _image_id(image: str) -> str:
    return f"simulated/{image}"
