"""All parts of a kubelet, put together. What each does is said in its module; here is who knows whom, and who runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from pybernetes.api import errors
from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podconditions import update_pod_condition
from pybernetes.api.core.podresources import Quantities
from pybernetes.api.core.v1 import Container, Node, Pod, PodCondition, PodStatus, Service
from pybernetes.api.node.v1 import RuntimeClass
from pybernetes.api.quantity import Quantity
from pybernetes.api.times import rfc3339
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.cri import v1 as cri
from pybernetes.cri.remote import Runtime

from . import admission
from .allocatable import allocatable, capacity, check_reservation, enforced, read_machine, reservation
from .backoff import CRASH_LOOP_BASE, BackOff
from .cgroups.container import ContainerSettings
from .cgroups.hierarchy import detect
from .cgroups.manager import CgroupManager
from .config.load import seconds
from .container_config import ConfigBuilder, ContainerExtras, Settings, pod_logs_folder
from .cpumanager.manager import CPUManager
from .devices.manager import DeviceManager
from .eviction.manager import EvictionManager
from .eviction.source import NodeSource
from .eviction.thresholds import parse_thresholds
from .extras import container_extras
from .garbage import ContainerCollector, ImageCollector
from .hooks import Hooks
from .images import ImageManager
from .killing import Killer
from .logrotation import LogRotator
from .metrics import KubeletMetrics
from .mirrors import Mirrors
from .node_facts import NodeFacts
from .node_reporter import NodeReporter
from .nodestatus import NodeFindings, new_node, status_images
from .objects import WatchedObjects
from .observing import Observing
from .phase import FAILED, is_terminal
from .pleg import PLEG
from .pod_intake import PodIntake
from .pod_syncer import KubeletPodSyncer, Parts
from .podmanager import PodManager, uid_of
from .podworkers import PodWorkers
from .probes.manager import ProbeManager
from .probes.prober import Prober
from .probes.results import ProbeType, Result
from .pulled_images import PulledImages
from .resources.actuation import ResizeActuator, ResizeError
from .resources.allocation import AllocationManager
from .resources.reporting import allocated_resources, container_resources, pod_resources
from .runtime_manager import RuntimeManager
from .runtime_state import RuntimeState
from .settings import KubeletSettings
from .shutdown import ShutdownManager, periods
from .starting import Starter
from .stats.provider import StatsProvider
from .stats.usage import reader
from .status import StatusFacts
from .status_manager import StatusManager
from .sysctls import SysctlAdmission
from .types import ObservedPod
from .volumes.manager import VolumeManager

HOUSEKEEPING = 30.0
"""Seconds between two looks for what should not be there; most of it is found as it happens."""
IMAGES_EVERY = 30.0
log = logging.getLogger(__name__)


class Kubelet:
    """A node's agent. `await run()` works until cancelled; pods stay as they are then."""

    def __init__(self, client: Client, runtime: Runtime, settings: KubeletSettings, clock: Clock) -> None:
        self.client = client
        self.runtime = runtime
        self.settings = settings
        self.clock = clock
        config = settings.config
        self.started = asyncio.Event()
        root = settings.root_dir
        for each in (root, settings.pods_dir, settings.pod_logs_dir, settings.container_logs_dir):
            each.mkdir(parents=True, exist_ok=True)
        self.broadcaster = EventBroadcaster(client.for_component("events"), clock, settings.node_name)
        self.recorder = self.broadcaster.recorder("kubelet")
        self.informers = InformerFactory(client.for_component("informers"), clock=clock)
        self.node_pods = self.informers.informer(Pod, field_selector=f"spec.nodeName={settings.node_name}")
        self.services = self.informers.informer(Service)
        self.nodes = self.informers.informer(Node, field_selector=f"metadata.name={settings.node_name}")

        # the machine
        machine = self.machine = read_machine(root)
        self.capacity = capacity(machine, max_pods=config.max_pods or 0, pods_per_core=config.pods_per_core or 0)
        reserved = {
            "kube_reserved": config.kube_reserved or {},
            "system_reserved": config.system_reserved or {},
        }
        check_reservation(
            self.capacity, reservation(self.capacity, eviction_hard=config.eviction_hard or {}, **reserved)
        )
        self.allocatable = allocatable(self.capacity, eviction_hard=config.eviction_hard or {}, **reserved)
        self._enforced = enforced(self.capacity, **reserved)
        self.facts = NodeFacts(settings.node_name, settings.node_ips, self.allocatable)
        hierarchy = detect()
        period = int(seconds(config.cpu_cfs_quota_period) * 1e6)
        self.cgroups = CgroupManager(
            hierarchy,
            root=config.cgroup_root or "/",
            pod_pids_limit=config.pod_pids_limit if config.pod_pids_limit is not None else -1,
            cpu_cfs_quota=bool(config.cpu_cfs_quota),
            cpu_cfs_quota_period=period,
        )
        container_settings = ContainerSettings(
            memory_capacity=machine.memory,
            cpu_cfs_quota=bool(config.cpu_cfs_quota),
            cpu_cfs_quota_period=period,
            cgroup2=type(hierarchy).__name__ == "CgroupsV2",
            single_process_oom_kill=config.single_process_oom_kill,
            page_sizes=hierarchy.page_sizes(),
        )

        # what the runtime has
        self.runtime_state = RuntimeState(runtime, clock, self._node_changed)
        self.observing = Observing(runtime)
        self.pleg = PLEG(runtime, self.observing, clock, self._runtime_changed, self._relisted)
        self.metrics = KubeletMetrics(settings.node_name, observed=self.pleg.all, pods=lambda: self.pods.all())
        self.metrics.measure(runtime)

        # what should be
        self.pods = PodManager()
        self.objects = WatchedObjects(client, clock, self.wake)
        self.volumes = VolumeManager(
            client, root, self.facts, clock, objects=self.objects, changed=self.wake, event=self._pod_event
        )
        self.configs = ConfigBuilder(
            root,
            self.facts,
            Settings(
                resources=container_settings,
                cluster_domain=config.cluster_domain or "",
                cluster_dns=config.cluster_dns or (),
                resolv_conf=config.resolv_conf or "",
                pod_logs_dir=settings.pod_logs_dir,
                seccomp_default=bool(config.seccomp_default),
            ),
            self.objects,
            lambda: self.services.items() if self.services.has_synced else None,
            self._pod_event,
        )
        self.cpus = CPUManager(
            config.cpu_manager_policy or "none",
            root,
            reserved_cpus=config.reserved_system_cpus or "",
            reserved_milli=self._reserved_milli(),
            options=config.cpu_manager_policy_options or {},
            set_cpuset=self._set_cpuset,
        )
        self.devices = DeviceManager(root / "device-plugins", clock, self._devices_changed)
        self.probes = ProbeManager(Prober(runtime, self.recorder), clock, self._probe_changed)
        self.workers: PodWorkers
        self.statuses = StatusManager(client, clock, self.pods.api_pod, lambda uid: self.workers.may_be_running(uid))
        self.sysctls = SysctlAdmission(config.allowed_unsafe_sysctls or ())
        self.allocation = AllocationManager(
            root,
            clock,
            active_pods=lambda: self.intake.active(),
            admit=self._admit,
            fits=lambda pod, others: admission.fits(pod, others, self._node()),
            event=self._pod_event,
            cpu_manager_policy=config.cpu_manager_policy or "none",
        )
        self.actuator = ResizeActuator(root, runtime, self.cgroups, container_settings, self.cpus)

        # the way from the one to the other
        hooks = Hooks(runtime, self.recorder, clock)
        killer = Killer(runtime, hooks, self.recorder, clock)
        pulled = PulledImages(root)
        parallel = 1 if config.serialize_image_pulls else config.max_parallel_image_pulls
        self.images = ImageManager(runtime, self.recorder, clock, pulled, parallel=parallel)
        starter = Starter(
            runtime,
            self.images,
            self.configs,
            hooks,
            killer,
            self.recorder,
            self._extras,
            pod_logs=settings.pod_logs_dir,
            container_logs=settings.container_logs_dir,
        )
        crash_loop = config.crash_loop_back_off
        longest = seconds(crash_loop.max_container_restart_period if crash_loop else None)
        self.backoff = BackOff(clock, min(CRASH_LOOP_BASE, longest or CRASH_LOOP_BASE), longest or 300.0)
        runtime_manager = RuntimeManager(
            runtime, self.configs, self.images, starter, killer, self.recorder, clock, self.backoff, self._handler
        )
        self.mirrors = Mirrors(client, self.pods, lambda: self.reporter.node)
        self.syncer = KubeletPodSyncer(
            Parts(
                runtime=runtime,
                runtime_manager=runtime_manager,
                pleg=self.pleg,
                statuses=self.statuses,
                probes=self.probes,
                volumes=self.volumes,
                cgroups=self.cgroups if config.cgroups_per_qos else None,
                objects=self.objects,
                images=self.images,
                killer=killer,
                mirrors=self.mirrors,
                recorder=self.recorder,
                clock=clock,
                facts=self._status_facts,
                network_problem=self.runtime_state.network_problem,
                allocated=self.allocation.allocated,
                keep_as_it_is=lambda pod, observed: self.actuator.keep_as_it_is(pod),
                before_start=self._resize,
                exclusive_cpus=self.cpus.exclusive,
                released=self._released,
                pods_dir=settings.pods_dir,
                logs_dir=settings.pod_logs_dir,
                container_logs_dir=settings.container_logs_dir,
            )
        )
        self.workers = PodWorkers(self.syncer, clock, resync=seconds(config.sync_frequency))
        self.intake = PodIntake(
            self.pods, self.workers, self.statuses, self.allocation, self.recorder, self._admit_devices
        )

        # the node itself
        node = new_node(
            settings.node_name,
            settings.hostname,
            settings.node_labels,
            config.register_with_taints or (),
            provider_id=config.provider_id or "",
        )
        self.reporter = NodeReporter(
            client,
            clock,
            self.recorder,
            node,
            self._findings,
            register=bool(config.register_node),
            update_every=seconds(config.node_status_update_frequency),
            report_every=seconds(config.node_status_report_frequency),
            lease_seconds=config.node_lease_duration_seconds or 40,
        )
        self.eviction: EvictionManager | None = None
        self.shutdown = ShutdownManager(
            root,
            periods=periods(
                seconds(config.shutdown_grace_period),
                seconds(config.shutdown_grace_period_critical_pods),
                [
                    (each.priority or 0, each.shutdown_grace_period_seconds or 0)
                    for each in config.shutdown_grace_period_by_pod_priority or ()
                ],
            ),
            active_pods=self.intake.active,
            kill=self._kill_for_shutdown,
            clock=clock,
            changed=self._node_changed,
            event=self._node_event,
        )
        self.containers_gc = ContainerCollector(
            runtime,
            clock,
            self.pleg.all,
            settings.container_logs_dir,
            keep=settings.maximum_dead_containers_per_container,
            least_age=settings.minimum_container_ttl,
        )
        self.images_gc = ImageCollector(
            runtime,
            clock,
            pulled,
            self._node_event,
            high=config.image_gc_high_threshold_percent or 85,
            low=config.image_gc_low_threshold_percent or 80,
            least_age=seconds(config.image_minimum_gc_age),
            greatest_age=seconds(config.image_maximum_gc_age),
        )
        self.stats = StatsProvider(
            node=settings.node_name,
            runtime=runtime,
            clock=clock,
            root=root,
            logs=settings.pod_logs_dir,
            observed=self.pleg.all,
            pods=self.pods.all,
            cgroups=self.cgroups,
        )
        self._image_list: list[Any] = []
        self._images_listed = float("-inf")
        self._pod_cidr = ""

    # -- running

    async def run(self) -> None:
        """Work until cancelled."""
        await self.runtime_state.wait_up()
        config = self.settings.config
        pids = self.machine.pids if "pods" in (config.enforce_node_allocatable or ()) else None
        self.cgroups.start(self._enforced if pids else self.capacity, pids=None)
        self.nodes.add_handler(self._node_seen, lambda _, new: self._node_seen(new))
        self.informers.start()
        self.eviction = await self._make_eviction()
        self._node_event(NORMAL, "Starting", "Starting kubelet.")
        try:
            async with asyncio.TaskGroup() as group:
                for each in (
                    self.broadcaster.run(),
                    self.runtime_state.run(),
                    self.pleg.run(),
                    self.reporter.run(),
                    self._take_pods(),
                    self.intake.run(),
                    self.eviction.run(),
                    self._rotate_logs(),
                    self.containers_gc.run(),
                    self.images_gc.run(),
                    self._housekeeping(),
                    self._reconcile_cpus(),
                ):
                    group.create_task(each)
        finally:
            self.probes.close()
            await self.workers.close()
            await self.statuses.stop()
            await self.devices.stop()
            await self.objects.close()
            await self.informers.stop()

    async def _take_pods(self) -> None:
        """Begin with pods once it is known what runs, and who we are."""
        await self.pleg.synced.wait()
        await self.devices.start((each.uid, container.name) for each in self.pleg.all() for container in each.running())
        await self.reporter.registered.wait()
        await self.nodes.wait_synced()
        await self.node_pods.wait_synced()
        # As they were created: who came first has the first right to what the node has.
        for pod in sorted(self.node_pods.items(), key=lambda each: _created(each)):
            self.intake.added(pod)
        self.node_pods.add_handler(self._added, self.intake.updated, self.intake.removed)
        self.started.set()
        self._relisted()

    def _added(self, pod: Pod) -> None:
        if self.pods.get(uid_of(pod)) is None:
            self.intake.added(pod)

    async def _housekeeping(self) -> None:
        await self.started.wait()
        while True:
            known = {uid_of(each) for each in self.pods.all()} | {each.ref.uid for each in self.workers.all()}
            for uid in self.volumes.orphans(known | self.pleg.known().keys()):
                try:
                    await self.volumes.remove(uid)
                except Exception as error:
                    log.warning("volumes of pod %s, which is gone, stay for now: %s", uid, error)
            await self.cgroups.remove_orphans(known | self.pleg.known().keys())
            self.cgroups.update_qos([self.allocation.allocated(each) for each in self.intake.active()])
            self.allocation.remove_orphans(known)
            self.actuator.remove_orphans(known)
            self.intake.retry_resizes()
            await self.mirrors.delete_orphans()
            self.backoff.collect()
            await self.clock.sleep(HOUSEKEEPING)

    async def _reconcile_cpus(self) -> None:
        if self.cpus.policy == "none":
            return
        await self.started.wait()
        while True:
            await self.clock.sleep(seconds(self.settings.config.cpu_manager_reconcile_period))
            await self.cpus.reconcile(
                (each.uid, container.name, container.id) for each in self.pleg.all() for container in each.running()
            )

    async def _rotate_logs(self) -> None:
        config = self.settings.config

        async def reopen(id: str) -> None:
            await self.runtime.reopen_container_log(cri.ReopenContainerLogRequest(container_id=id))

        rotator = LogRotator(
            max_size=config.container_log_max_size or "10Mi",
            max_files=config.container_log_max_files or 5,
            interval=seconds(config.container_log_monitor_interval),
            workers=config.container_log_max_workers or 1,
            running=lambda: [
                (container.id, container.log_path) for each in self.pleg.all() for container in each.running()
            ],
            reopen=reopen,
            clock=self.clock,
        )
        await rotator.run()

    # -- what wakes whom

    def wake(self, uid: str) -> None:
        """Something about a pod may have changed."""
        self.workers.wake(uid)

    def _runtime_changed(self, uid: str) -> None:
        if self.workers.get(uid) is not None:
            self.workers.wake(uid)
        elif uid not in self.pleg.known():
            self.pleg.relist_soon()

    def _relisted(self) -> None:
        """End what the runtime has and nobody wants."""
        if not self.started.is_set():
            return
        for uid, ref in self.pleg.known().items():
            if self.pods.get(uid) is None:
                self.workers.orphan(ref)

    def _probe_changed(self, uid: str, probe: ProbeType, container: str, result: Result) -> None:
        self.workers.wake(uid)

    def _devices_changed(self) -> None:
        self._node_changed()
        for pod in self.intake.active():
            self.workers.wake(uid_of(pod))

    def _node_changed(self) -> None:
        if hasattr(self, "reporter"):
            self.reporter.wake()

    def _node_seen(self, node: Node) -> None:
        self.facts.labels = (node.metadata.labels if node.metadata else None) or {}
        cidr = (node.spec.pod_cidr if node.spec else None) or ""
        if cidr and cidr != self._pod_cidr:
            self._pod_cidr = cidr
            asyncio.ensure_future(self._tell_pod_cidr(node))  # noqa: RUF006 - it logs its own failure

    async def _tell_pod_cidr(self, node: Node) -> None:
        assert node.spec is not None
        cidrs = ",".join(node.spec.pod_cidrs or [self._pod_cidr])
        config = cri.RuntimeConfig(network_config=cri.NetworkConfig(pod_cidr=cidrs))
        try:
            await self.runtime.update_runtime_config(cri.UpdateRuntimeConfigRequest(runtime_config=config))
            await self.runtime_state.look()
        except Exception as error:
            log.warning("the runtime does not take the pod range %s: %s", cidrs, error)
            self._pod_cidr = ""
        self._node_changed()

    # -- admitting

    def _node(self) -> Node:
        """The Node, with what it has by our own reckoning."""
        node = self.nodes.named(self.settings.node_name) or self.reporter.node
        assert node is not None
        assert node.status is not None
        mine = {name: str(value) for name, value in self._all_allocatable().items()}
        status = msgspec.structs.replace(node.status, allocatable={**(node.status.allocatable or {}), **mine})
        return msgspec.structs.replace(node, status=status)

    def _admit(self, pod: Pod, others: list[Pod]) -> None:
        assert self.eviction is not None
        self.eviction.admit(pod)
        self.sysctls.admit(pod)
        self.shutdown.admit(pod)
        admission.admit(pod, others, self._node())
        self.cpus.admit(pod)

    async def _admit_devices(self, pod: Pod) -> None:
        await self.devices.admit(pod, [uid_of(each) for each in self.intake.active()])

    def _released(self, uid: str) -> None:
        self.cpus.remove(uid)
        self.devices.remove(uid)
        self.allocation.terminated(uid)
        self.intake.retry_resizes()

    async def _extras(self, pod: Pod, container: AnyContainer) -> ContainerExtras | None:
        if isinstance(container, Container):
            self.actuator.container_started(pod, container)
        return await container_extras(pod, container, self.devices, self.cpus)

    async def _handler(self, pod: Pod) -> str:
        name = pod.spec.runtime_class_name if pod.spec else None
        if not name:
            return ""
        try:
            found = await self.client.get(RuntimeClass, name)
        except errors.NotFound as error:
            raise LookupError(str(error)) from error
        except (errors.APIError, OSError, TimeoutError) as error:
            raise LookupError(f"failed to get RuntimeClass {name}: {error}") from error
        return found.handler or ""

    async def _resize(self, pod: Pod, observed: ObservedPod) -> None:
        """Give running containers what the pod has been allocated."""
        self.actuator.pod_started(pod)
        try:
            if await self.actuator.resize(pod, observed):
                for each in observed.running():
                    self.observing.forget(each.id)
                self.workers.wake(uid_of(pod))
        except ResizeError as error:
            self.allocation.note_error(pod, str(error))
        self.allocation.note_progress(pod, self.actuator.in_progress(pod, observed))

    async def _set_cpuset(self, id: str, cpus: str) -> None:
        await self.runtime.update_container_resources(
            cri.UpdateContainerResourcesRequest(container_id=id, linux=cri.LinuxContainerResources(cpuset_cpus=cpus))
        )

    # -- reporting

    def _status_facts(self, pod: Pod) -> StatusFacts:
        return StatusFacts(
            runtime=self.runtime_state.name,
            host_ips=self.facts.ips,
            judge=self.probes.update_pod_status,
            resources=container_resources,
            resize=self.allocation.conditions(uid_of(pod)),
            extend=self._extend,
            recursive_read_only=self.runtime_state.recursive_read_only,
        )

    def _extend(self, pod: Pod, status: PodStatus) -> None:
        running = pod.status is not None and pod.status.phase == "Running" and not is_terminal(status.phase)
        try:
            cgroup = self.cgroups.read(pod) if running and self.settings.config.cgroups_per_qos else None
        except Exception:
            cgroup = None  # it has just gone
        status.resources = pod_resources(pod, cgroup, self.statuses.get(uid_of(pod)) or pod.status)
        status.allocated_resources = allocated_resources(pod)
        self.devices.status(pod, [*(status.init_container_statuses or ()), *(status.container_statuses or ())])

    def _all_allocatable(self) -> Quantities:
        _, healthy, gone = self.devices.capacity()
        return {**self.allocatable, **_amounts(dict.fromkeys(gone, 0)), **_amounts(healthy)}

    async def _findings(self) -> NodeFindings:
        now = self.clock.monotonic()
        if now - self._images_listed > IMAGES_EVERY:
            try:
                self._image_list = list((await self.runtime.list_images()).images)
                self._images_listed = now
            except Exception as error:
                log.info("images cannot be listed: %s", error)
        total, _, gone = self.devices.capacity()
        state = self.runtime_state
        problems = [state.runtime_problem(), state.network_problem(), self.shutdown.message()]
        pleg = self.pleg.problem()
        if pleg:
            problems.insert(0, f"PLEG is not healthy: {pleg}")
        limit = self.settings.config.node_status_max_images
        return NodeFindings(
            name=self.settings.node_name,
            machine=self.machine,
            capacity={**self.capacity, **_amounts(dict.fromkeys(gone, 0)), **_amounts(total)},
            allocatable=self._all_allocatable(),
            addresses=self.settings.node_ips,
            hostname=self.settings.hostname,
            port=self.settings.config.port or 10250,
            runtime_version=state.node_version,
            images=status_images(
                [(each.repo_tags, each.repo_digests, each.size) for each in self._image_list],
                50 if limit is None else limit,
            ),
            handlers=state.handlers,
            supplemental_groups_policy=state.supplemental_groups_policy,
            pressures={
                each: self.eviction is not None and self.eviction.under_pressure(each)
                for each in ("MemoryPressure", "DiskPressure", "PIDPressure")
            },
            problems=[each for each in problems if each],
        )

    def _pod_event(self, pod: Pod, type: str, reason: str, message: str) -> None:
        self.recorder.event(pod, type, reason, message)

    def _node_event(self, type: str, reason: str, message: str) -> None:
        self.recorder.event(self.reporter.reference, type, reason, message)

    # -- the node's own needs

    async def _make_eviction(self) -> EvictionManager:
        config = self.settings.config
        source = await NodeSource.create(
            self.settings.root_dir,
            self.runtime,
            cgroups=self.cgroups,
            reader=reader(),
            pod_logs=lambda pod: pod_logs_folder(self.settings.pod_logs_dir, pod),
        )
        return EvictionManager(
            parse_thresholds(
                config.eviction_hard or {},
                config.eviction_soft,
                config.eviction_soft_grace_period,
                config.eviction_minimum_reclaim,
                enforce_allocatable="pods" in (config.enforce_node_allocatable or ()),
            ),
            source=source,
            active_pods=lambda: [self.allocation.allocated(each) for each in self.intake.active()],
            evict=self._evict,
            clock=self.clock,
            pressure_transition_period=seconds(config.eviction_pressure_transition_period),
            max_pod_grace=config.eviction_max_pod_grace_period or 0,
            reclaim_containers=lambda: self.containers_gc.collect(all_dead=True),
            reclaim_images=self.images_gc.delete_unused,
            cleaned_up=lambda pod: not self.volumes.has_volumes(uid_of(pod)),
            event=self._node_event,
            changed=self._node_changed,
        )

    async def _evict(
        self, pod: Pod, grace: float, message: str, condition: PodCondition | None, annotations: Mapping[str, str]
    ) -> None:
        self.recorder.event(pod, WARNING, "Evicted", message, dict(annotations))
        await self._end(pod, grace, "Evicted", message, condition)

    async def _kill_for_shutdown(
        self, pod: Pod, grace: float, reason: str, message: str, condition: PodCondition
    ) -> None:
        await self._end(pod, grace, reason, message, condition)

    async def _end(self, pod: Pod, grace: float, reason: str, message: str, condition: PodCondition | None) -> None:
        def change(status: PodStatus) -> None:
            if not is_terminal(status.phase) or status.phase == FAILED:
                status.phase, status.reason, status.message = FAILED, reason, message
            if condition is not None:
                update_pod_condition(status, condition, rfc3339(self.clock.now()))

        await self.workers.kill(uid_of(pod), grace=int(grace), evicted=True, status_change=change)

    def _reserved_milli(self) -> int:
        total = self.capacity["cpu"].milli_value()
        left = allocatable(
            self.capacity,
            kube_reserved=self.settings.config.kube_reserved or {},
            system_reserved=self.settings.config.system_reserved or {},
        )["cpu"].milli_value()
        return total - left


def _amounts(numbers: Mapping[str, int]) -> Quantities:
    return {name: Quantity(value) for name, value in numbers.items()}


def _created(pod: Pod) -> str:
    return (pod.metadata.creation_timestamp if pod.metadata else None) or ""
