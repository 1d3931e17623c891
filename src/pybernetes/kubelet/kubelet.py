"""All parts of a kubelet, put together. What each does is said in its module; here is who knows whom, and who runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podresources import parsed
from pybernetes.api.core.v1 import Container, Node, Pod, Service
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import key_of, uid_of
from pybernetes.component import klog
from pybernetes.component.tasks import Tasks
from pybernetes.component.watchdog import LoopWatchdog
from pybernetes.cri import v1 as cri
from pybernetes.cri.containerd_snapshots import ImageViews
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from . import upkeep
from .backoff import CRASH_LOOP_BASE, BackOff
from .cgroups.container import ContainerSettings
from .cgroups.hierarchy import CgroupError, detect
from .cgroups.manager import CgroupManager
from .cgroups.none import NoCgroups
from .cgroups.v2 import CgroupsV2
from .config.load import seconds
from .container import apparmor
from .container.config import ConfigBuilder, ContainerExtras, Settings
from .container.devices import container_extras
from .container.hooks import Hooks
from .container.starter import Starter
from .container.sysctls import SysctlAdmission
from .cpumanager.manager import CPUManager
from .csi.attachments import Attachments
from .csi.csi_node import CSINodeKeeper
from .csi.drivers import TYPE as CSI_PLUGIN
from .csi.drivers import Drivers as CSIDrivers
from .csi.local_driver import LocalVolumes
from .csi.stats import volumes_of
from .csi.volumes import CSIVolumes
from .devices.manager import DeviceManager
from .dra.manager import DRAManager
from .dra.plugin import TYPE as DRA_PLUGIN
from .eviction.manager import EvictionManager
from .gc.containerd_leftovers import Leftovers
from .images.manager import ImageManager
from .images.pulled import PulledImages
from .logind.watch import LogindWatch
from .metrics.kubelet import KubeletMetrics
from .metrics.managers import ManagerMetrics
from .metrics.node import NodeMetrics
from .metrics.pods import PodMetrics
from .node.admission import NodeAdmission
from .node.allocatable import read_machine
from .node.facts import NodeFacts
from .node.oom_watcher import OOMWatcher
from .node.reporter import NodeReporter
from .node.status import new_node
from .node.view import NodeView
from .plugins.registry import Handler, PluginRegistry
from .pod.evictor import Evicting
from .pod.intake import PodIntake
from .pod.killing import Killer
from .pod.manager import PodManager
from .pod.mirrors import Mirrors
from .pod.syncer import KubeletPodSyncer, Parts
from .pod.workers import PodWorkers
from .podresources.describing import Managers
from .podresources.server import PodResourcesServer
from .probes.manager import ProbeManager
from .probes.prober import Prober
from .probes.results import ProbeType, Result
from .resources.actuation import ResizeActuator, ResizeError
from .resources.allocation import AllocationManager
from .runtime.manager import RuntimeManager
from .runtime.pleg import PLEG
from .runtime.pod_observer import Observing
from .runtime.runtime_class import runtime_handler
from .runtime.state import RuntimeState
from .runtime.types import ObservedPod
from .service_account_tokens import Tokens
from .settings import KubeletSettings
from .sources.following import Source, static_sources
from .stats.claims import claims_of
from .stats.provider import StatsProvider
from .stats.runtime_usage import RuntimeUsage
from .stats.usage import UsageReader, reader
from .status.facts import PodFacts
from .status.manager import StatusManager
from .volumes.image import ImageMounts
from .volumes.manager import VolumeManager
from .watched_objects import objects_for

RESIZE_RETRY = 10.0
"""Seconds after which a resize that failed is tried again."""
log = logging.getLogger(__name__)


class Kubelet:
    """A node's agent. `await run()` works until cancelled; pods stay as they are then."""

    def __init__(self, client: Client, runtime: Runtime, settings: KubeletSettings, clock: Clock) -> None:
        self.client = client
        self.runtime = runtime
        self.settings = settings
        self.clock = clock
        self.started = asyncio.Event()
        """The API server's pods have been taken in."""
        for each in (settings.root_dir, settings.pods_dir, settings.pod_logs_dir):
            each.mkdir(parents=True, exist_ok=True)
        settings.container_logs_dir = _made(settings.container_logs_dir)
        self.broadcaster = EventBroadcaster(client.for_component("events"), clock, settings.node_name)
        self.recorder = self.broadcaster.recorder("kubelet")
        self.informers = InformerFactory(client.for_component("informers"), clock=clock)
        self.node_pods = self.informers.informer(Pod, field_selector=f"spec.nodeName={settings.node_name}")
        self.services = self.informers.informer(Service)
        self.nodes = self.informers.informer(Node, field_selector=f"metadata.name={settings.node_name}")
        self.tasks = Tasks("kubelet")
        self.watchdog = LoopWatchdog()
        self._devices_started = asyncio.Event()
        """Pods may be admitted: it is known what runs, and who has which devices."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._pod_cidr = ""
        self._make_node()
        self._make_state()
        self._make_workers()
        self._make_upkeep()

    # -- putting together

    def _make_node(self) -> None:
        """The machine, the runtime, and the Node that shows both."""
        settings, config, clock = self.settings, self.settings.config, self.clock
        machine = self.machine = read_machine(settings.root_dir)
        if config.fail_swap_on and machine.swap:
            raise ValueError(
                "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false"
            )
        self.runtime_state = RuntimeState(self.runtime, clock, self.node_changed)
        self.observing = Observing(self.runtime)
        self.pleg = PLEG(self.runtime, self.observing, clock, self._runtime_changed, self._relisted)
        self.devices = DeviceManager(settings.root_dir / "device-plugins", clock, self._devices_changed)
        self.dra = DRAManager(
            self.client, settings.root_dir, settings.node_name, clock, changed=self._wake_all, took=self._dra_took
        )
        self.eviction: EvictionManager | None = None
        self.view = NodeView(
            settings,
            machine,
            self.runtime,
            self.runtime_state,
            self.devices,
            clock,
            problems=self._problems,
            pressure=lambda condition: self.eviction is not None and self.eviction.under_pressure(condition),
            volumes_in_use=lambda: self.attachments.in_use(),
        )
        self.facts = NodeFacts(settings.node_name, settings.node_ips, self.view.machine_allocatable)
        self._initial = new_node(
            settings.node_name,
            settings.hostname,
            settings.node_labels,
            config.register_with_taints or (),
            provider_id=config.provider_id or "",
        )
        self.reporter = NodeReporter(
            self.client,
            clock,
            self.recorder,
            self._initial,
            self.view.findings,
            register=bool(config.register_node),
            update_every=seconds(config.node_status_update_frequency),
            report_every=seconds(config.node_status_report_frequency),
            lease_seconds=config.node_lease_duration_seconds or 40,
        )
        self.attachments = Attachments(
            self.client,
            settings.node_name,
            lambda: self.nodes.named(settings.node_name),
            self.node_changed,
            managed=config.enable_controller_attach_detach is not False,
        )
        self.csi_node = CSINodeKeeper(self.client, settings.node_name, self.reporter.registered)
        self.csi_drivers = CSIDrivers(self.csi_node, self._csi_driver_came, self._csi_took)
        plugins: dict[str, Handler] = {DRA_PLUGIN: self.dra.drivers, CSI_PLUGIN: self.csi_drivers}
        self.plugins = PluginRegistry(settings.root_dir / "plugins_registry", plugins)
        hierarchy = detect() if config.cgroups_per_qos else NoCgroups()
        self.usage: UsageReader = reader() if config.cgroups_per_qos else RuntimeUsage(self.runtime)
        period = int(seconds(config.cpu_cfs_quota_period) * 1e6)
        self.cgroups = CgroupManager(
            hierarchy,
            root=config.cgroup_root or "/",
            pod_pids_limit=config.pod_pids_limit if config.pod_pids_limit is not None else -1,
            cpu_cfs_quota=bool(config.cpu_cfs_quota),
            cpu_cfs_quota_period=period,
        )
        self._container_settings = ContainerSettings(
            memory_capacity=machine.memory,
            cpu_cfs_quota=bool(config.cpu_cfs_quota),
            cpu_cfs_quota_period=period,
            cgroup2=isinstance(hierarchy, CgroupsV2),
            single_process_oom_kill=config.single_process_oom_kill,
            swap=machine.swap,
            limited_swap=config.memory_swap is not None and config.memory_swap.swap_behavior == "LimitedSwap",
            page_sizes=hierarchy.page_sizes(),
        )
        self.cpus = CPUManager(
            config.cpu_manager_policy or "none",
            settings.root_dir,
            reserved_cpus=config.reserved_system_cpus or "",
            reserved_milli=self.view.reserved_milli_cpu,
            options=config.cpu_manager_policy_options or {},
            set_cpuset=self._set_cpuset,
        )

    def _make_state(self) -> None:
        """Make the pod manager, metrics, and the caches of desired and reported state."""
        settings, config, clock, root = self.settings, self.settings.config, self.clock, self.settings.root_dir
        self.pods = PodManager()
        self.metrics = KubeletMetrics(settings.node_name, observed=self.pleg.all, pods=self.pods.all)
        self.node_metrics = NodeMetrics(self.metrics.registry, self.cgroups.hierarchy)
        self.node_metrics.count_claims(self.dra.count)
        self.pod_metrics = PodMetrics(
            self.metrics.registry,
            clock,
            pods=self.pods.all,
            active=lambda: self.intake.active(),
            working=lambda: self.workers.all(),
        )
        self.manager_metrics = ManagerMetrics(self.metrics.registry)
        self.metrics.measure(self.runtime, self.node_metrics)
        self.pleg.took = self.node_metrics.relisted
        self.pleg.streaming = self._streaming
        self.pleg.seen = self._log_runtime_event
        self.metrics.watch(self.watchdog)
        strategy = config.config_map_and_secret_change_detection_strategy or "Watch"
        self.objects = objects_for(strategy, self.client, clock, self.wake)
        images = ImageMounts(root, ImageViews(self.runtime))
        self.volumes = VolumeManager(
            self.client,
            root,
            self.facts,
            clock,
            objects=self.objects,
            changed=self.wake,
            event=self._pod_event,
            images=images,
            csi=self._csi_volumes,
        )
        self.configs = ConfigBuilder(
            root,
            self.facts,
            Settings(
                resources=self._container_settings,
                cluster_domain=config.cluster_domain or "",
                cluster_dns=config.cluster_dns or (),
                resolv_conf=config.resolv_conf or "",
                pod_logs_dir=settings.pod_logs_dir,
                seccomp_default=bool(config.seccomp_default),
                recursive_read_only=lambda: self.runtime_state.recursive_read_only,
                runtime_has_cdi=lambda: self.runtime_state.has_cdi,
            ),
            self.objects,
            lambda: self.services.items() if self.services.has_synced else None,
            self._pod_event,
            images,
        )
        self.probes = ProbeManager(Prober(self.runtime, self.recorder), clock, self._probe_changed)
        self.workers: PodWorkers
        self.statuses = StatusManager(
            self.client, clock, self.pods.api_pod, lambda uid: self.workers.may_be_running(uid)
        )
        self.statuses.took = self.pod_metrics.status_sync.observe
        self.evicting = Evicting(lambda: self.workers, self.recorder, clock)
        self.admission = NodeAdmission(
            node=self.node,
            sysctls=SysctlAdmission(config.allowed_unsafe_sysctls or ()),
            cpus=self.cpus,
            devices=self.devices,
            evicting=self.evicting,
            intake=lambda: self.intake,
            allocation=lambda: self.allocation,
            shutdown=lambda: self.shutdown,
            eviction=lambda: self.eviction,
            known=self._known,
            apparmor=apparmor.enabled(),
        )
        self.allocation = AllocationManager(
            root,
            clock,
            active_pods=lambda: self.intake.active(),
            admit=self.admission.admit,
            fits=self.admission.fits,
            event=self._pod_event,
            cpu_manager_policy=config.cpu_manager_policy or "none",
        )
        self.actuator = ResizeActuator(root, self.runtime, self.cgroups, self._container_settings, self.cpus)

    def _make_workers(self) -> None:
        """The way from what should be to what is."""
        settings, config, clock, runtime = self.settings, self.settings.config, self.clock, self.runtime
        hooks = self.hooks = Hooks(runtime, self.recorder, clock)
        killer = Killer(runtime, hooks, self.recorder, clock)
        self.pulled = PulledImages(settings.root_dir)
        parallel = 1 if config.serialize_image_pulls else config.max_parallel_image_pulls
        self.images = ImageManager(runtime, self.recorder, clock, self.pulled, parallel=parallel)
        self.images.took = self._image_pulled
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
        self.backoff = BackOff(clock, min(CRASH_LOOP_BASE, longest), longest)
        handler = partial(runtime_handler, self.client)
        runtime_manager = self.runtime_manager = RuntimeManager(
            runtime,
            self.configs,
            self.images,
            starter,
            killer,
            self.recorder,
            clock,
            self.backoff,
            handler,
            self.observing,
            self.metrics,
        )
        self.mirrors = Mirrors(self.client, self.pods, lambda: self.reporter.node)
        facts = PodFacts(
            self.facts,
            self.runtime_state,
            self.probes,
            self.devices,
            self.allocation,
            self.actuator,
            self.statuses,
            self.cgroups if self.cgroups.enforced else None,
        )
        parts = Parts(
            runtime=runtime,
            runtime_manager=runtime_manager,
            pleg=self.pleg,
            statuses=self.statuses,
            probes=self.probes,
            volumes=self.volumes,
            cgroups=self.cgroups,
            objects=self.objects,
            images=self.images,
            killer=killer,
            mirrors=self.mirrors,
            recorder=self.recorder,
            clock=clock,
            facts=facts.of,
            predecessor=lambda work: self.workers.predecessor(work),
            network_problem=self.runtime_state.network_problem,
            allocated=self.allocation.allocated,
            keep_as_it_is=lambda pod, _: self.actuator.keep_as_it_is(pod),
            resize=self._resize,
            exclusive_cpus=self.cpus.exclusive,
            prepare_claims=self._prepare_claims,
            unprepare_claims=self._unprepare_claims,
            released=self._pod_released,
            first_running=self.pod_metrics.running,
            reported=self.metrics.count_ends,
            pods_dir=settings.pods_dir,
            logs_dir=settings.pod_logs_dir,
            container_logs_dir=settings.container_logs_dir,
        )
        self.syncer = KubeletPodSyncer(parts)
        self.workers = PodWorkers(
            self.syncer,
            clock,
            resync=seconds(config.sync_frequency),
            took=self.metrics.pod_worker_duration.observe,
        )
        self.intake = PodIntake(
            self.pods,
            self.workers,
            self.statuses,
            self.allocation,
            self.recorder,
            self._admit_devices,
            self.admission.make_room,
        )
        self.intake.metrics = self.pod_metrics
        self.workers.again = self.intake.restart  # type: ignore[method-assign]
        self.workers.failed = self._sync_failed  # type: ignore[method-assign]
        self.admission.preempted = self.pod_metrics.preemptions.inc
        self._static = static_sources(config, settings.node_name, clock, self.intake.added, self.intake.removed)

    def _make_upkeep(self) -> None:
        """Make the parts that keep the node in order: shutdown, garbage collection, eviction."""
        self.shutdown = upkeep.shutdown_manager(self)
        self.containers_gc = upkeep.container_collector(self)
        self.containers_gc.failed = partial(self.node_event, WARNING, "ContainerGCFailed")
        self.images_gc = upkeep.image_collector(self)
        self.images_gc.removed = self.node_metrics.images_collected.inc
        self.log_rotator = upkeep.log_rotator(self)
        self.written_files = upkeep.written_files(self)
        self.housekeeping = upkeep.housekeeping(self)
        self.devices.took, self.devices.registered = (
            self.manager_metrics.allocated,
            self.manager_metrics.registered_plugin,
        )
        self.volumes.took = self.manager_metrics.volume_operation
        self.manager_metrics.read(self)
        self.pod_resources = PodResourcesServer(
            self.settings.root_dir / "pod-resources",
            Managers(self.devices, self.cpus, self.dra),
            self.intake.active,
            self.clock,
            self.metrics.registry,
        )
        self.stats = StatsProvider(
            node=self.settings.node_name,
            runtime=self.runtime,
            clock=self.clock,
            root=self.settings.root_dir,
            logs=self.settings.pod_logs_dir,
            observed=self.pleg.all,
            pods=self.pods.all,
            cgroups=self.cgroups,
            usage=self.usage,
        )
        if (csi := self.volumes.csi) is not None:
            self.stats.disk.csi = lambda uid: volumes_of(csi, uid, self.pods.get(uid))
        self.node_metrics.follow_volumes(lambda: claims_of(self.stats.disk.latest(), self.pods.get))

    # -- running

    async def run(self) -> None:
        """Work until cancelled."""
        await self.runtime_state.wait_up()
        self._log_start()
        enforce = "pods" in (self.settings.config.enforce_node_allocatable or ())
        self.cgroups.start(self.view.enforced if enforce else self.view.machine_capacity)
        self._enforce_reserved()
        self.nodes.add_handler(self._node_seen, lambda _, new: self._node_seen(new), lambda _: self.reporter.gone())
        self.informers.start()
        self.node_event(NORMAL, "Starting", "Starting kubelet.")
        self.manager_metrics.registering()
        self.watchdog.start()
        try:
            for name, run in self._parts():
                self.tasks.start(name, run)
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            await self.tasks.stop()
            self.watchdog.stop()
            self.probes.close()
            await self.workers.close()
            await self.statuses.stop()
            await self.devices.stop()
            await self.csi_drivers.close()
            await self.objects.close()
            await self.informers.stop()

    def _log_start(self) -> None:
        """Say what the node is made of, and which cgroups are missing."""
        config = self.settings.config
        about = {
            "NodeName": self.settings.node_name,
            "RuntimeCgroupsName": "",
            "CgroupsPerQOS": bool(config.cgroups_per_qos),
            "CgroupRoot": config.cgroup_root or "/",
            "KubeletRootDir": str(self.settings.root_dir),
            "CPUManagerPolicy": config.cpu_manager_policy or "none",
            "PodPidsLimit": config.pod_pids_limit,
        }
        klog.info(log, 0, "Creating Container Manager object based on Node Config", nodeConfig=about)

    def _parts(self) -> Iterable[tuple[str, Callable[[], Coroutine[Any, Any, object]]]]:
        """The tasks that run as long as the kubelet, by the name that health checks and metrics show."""
        yield "events", self.broadcaster.run
        yield "runtime state", self.runtime_state.run
        yield "pleg", self.pleg.run
        yield "node status and lease", self.reporter.run
        yield "pod sources", self._take_pods
        yield "pod intake", self.intake.run
        yield "eviction manager", self._evict
        yield "watch for a node without memory", OOMWatcher(self.node_event).run
        yield "stats", self.stats.run
        yield "log rotation", self.log_rotator.run
        yield "files that pods write to", self.written_files.run
        yield "container garbage collection", self.containers_gc.run
        yield "image garbage collection", self.images_gc.run
        yield "housekeeping", self.housekeeping.run
        yield "leftovers of containerd", partial(Leftovers(self.runtime).run, self.clock)
        yield "cpu manager", self._reconcile_cpus
        yield "plugin registry", self.plugins.run
        yield "pod resources socket", self.pod_resources.run
        yield "CSINode", self.csi_node.run
        if kubeconfig := self.settings.local_volumes_kubeconfig:
            local = LocalVolumes(kubeconfig, self.settings.node_name, self.settings.root_dir, self.clock)
            yield "local volumes", local.run
        yield "dynamic resources", partial(self.dra.reconcile, self._pods_with_claims)
        yield "resource slices", self._wipe_slices
        yield "logind", LogindWatch(self.shutdown, self.clock).run
        for number, source in enumerate(self._static, 1):
            yield f"static pods {number}", partial(self._static_pods, source)

    async def _evict(self) -> None:
        self.eviction = await upkeep.eviction_manager(self)
        self.eviction.aged = self.manager_metrics.evicted
        await self.eviction.run()

    async def _static_pods(self, source: Source) -> None:
        await self._devices_started.wait()
        await source.run()

    def _enforce_reserved(self) -> None:
        """Limit what runs beside pods to what is reserved for it, where that is wanted."""
        config = self.settings.config
        for who, cgroup, reserved in (
            ("system", config.system_reserved_cgroup, config.system_reserved),
            ("kube", config.kube_reserved_cgroup, config.kube_reserved),
        ):
            for suffix in ("", "-compressible"):
                if f"{who}-reserved{suffix}" in (config.enforce_node_allocatable or ()):
                    self.cgroups.enforce_reserved(cgroup or "", parsed(reserved), compressible=bool(suffix))
                    message = f"Updated limits on {who} reserved cgroup {cgroup}"
                    self.node_event(NORMAL, "NodeAllocatableEnforced", message)
        if "pods" in (config.enforce_node_allocatable or ()):
            self.node_event(NORMAL, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")

    async def _take_pods(self) -> None:
        """Take static pods once the runtime has been listed, and pods of the API server after its first list."""
        await self.pleg.synced.wait()
        await asyncio.gather(*map(self.pleg.refresh, self.pleg.known().values()))
        if not self._devices_started.is_set():
            await self.devices.start((each.uid, found.name) for each in self.pleg.all() for found in each.running())
            self._devices_started.set()
        await self.reporter.registered.wait()
        await self.nodes.wait_synced()
        await self.node_pods.wait_synced()
        # As they were created: who came first has the first right to what the node has.
        for pod in sorted(self.node_pods.items(), key=_created):
            self.intake.added(pod)
        self.node_pods.add_handler(self._added, self.intake.updated, self.intake.removed)
        self.started.set()
        self._relisted()

    def _added(self, pod: Pod) -> None:
        if self.pods.get(uid_of(pod)) is None:
            self.intake.added(pod)

    async def _reconcile_cpus(self) -> None:
        if self.cpus.policy == "none":
            return
        await self.started.wait()
        while True:
            await self.clock.sleep(seconds(self.settings.config.cpu_manager_reconcile_period))
            if self.all_sources_heard():
                self.cpus.remove_orphans(self._known())
            await self.cpus.reconcile(
                (each.uid, found.name, found.id) for each in self.pleg.all() for found in each.running()
            )

    # -- what wakes whom

    def wake(self, uid: str) -> None:
        """Something about a pod may have changed."""
        self.workers.wake(uid)

    def _wake_all(self, uids: set[str]) -> None:
        for uid in uids:
            self.workers.wake(uid)

    def node_changed(self) -> None:
        """Something about the node may have changed."""
        self.reporter.wake()

    def _runtime_changed(self, uid: str) -> None:
        if self.workers.get(uid) is not None:
            self.workers.wake(uid)
        elif uid not in self.pleg.known():
            self.pleg.relist_soon()

    def _log_runtime_event(self, uid: str, type: str, id: str) -> None:
        pod, event = self.pods.get(uid), {"ID": uid, "Type": type, "Data": id}
        if pod is not None:
            klog.info(log, 2, "SyncLoop (PLEG): event for pod", pod=key_of(pod), event=event)
        else:
            klog.info(log, 4, "SyncLoop (PLEG): pod does not exist, ignore irrelevant event", event=event)

    def _relisted(self) -> None:
        """End containers of the runtime that belong to no wanted pod."""
        if self.all_sources_heard():
            for uid, ref in self.pleg.known().items():
                if self.pods.get(uid) is None:
                    if self.workers.get(uid) is None:
                        self.pod_metrics.orphaned.inc()
                    self.workers.orphan(ref)

    def all_sources_heard(self) -> bool:
        """Whether all sources of pods have been read once: only then is a pod without a source known to be unwanted."""
        return self.started.is_set() and all(each.pods.seen.is_set() for each in self._static)

    def _probe_changed(self, uid: str, probe: ProbeType, container: str, result: Result) -> None:
        pod = self.pods.get(uid)
        if pod is not None:
            klog.info(
                log, 1, "SyncLoop (probe)", probe=str(probe), status=_probe_status(probe, result), pod=key_of(pod)
            )
        self.syncer.probe_changed(uid)
        self.workers.wake(uid)

    def _devices_changed(self) -> None:
        self.node_changed()
        for pod in self.intake.active():
            self.workers.wake(uid_of(pod))

    def _node_seen(self, node: Node) -> None:
        self.reporter.seen(node)
        self.manager_metrics.node_seen(node)
        self.attachments.node_changed()
        self.facts.labels = (node.metadata.labels if node.metadata else None) or {}
        cidr = (node.spec.pod_cidr if node.spec else None) or ""
        if cidr and cidr != self._pod_cidr:
            self._pod_cidr = cidr
            assert node.spec is not None
            task = asyncio.create_task(self._tell_pod_cidr(",".join(node.spec.pod_cidrs or [cidr])))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell_pod_cidr(self, cidrs: str) -> None:
        """The runtime makes its network configuration from it, where it has a template for one."""
        config = cri.RuntimeConfig(network_config=cri.NetworkConfig(pod_cidr=cidrs))
        try:
            await self.runtime.update_runtime_config(cri.UpdateRuntimeConfigRequest(runtime_config=config))
            await self.runtime_state.look()
        except CRIError as error:
            log.warning("the runtime does not take the pod range %s: %s", cidrs, error)
            self._pod_cidr = ""
        self.node_changed()

    # -- admitting

    def node(self) -> Node:
        """The Node, with what it has by our own reckoning."""
        found = self.nodes.named(self.settings.node_name) or self.reporter.node or self._initial
        return self.view.with_own_reckoning(found)

    def _known(self) -> set[str]:
        """The uids of pods that may keep devices and CPUs: those that a source has.

        A pod that no source has any more may still be ending, but who comes after it shall not be refused for that.
        Until all sources have been read, a pod that holds resources may belong to one of them.
        """
        known = {uid_of(each) for each in self.pods.all()}
        return known if self.all_sources_heard() else known | self.devices.holders() | self.cpus.holders()

    async def _admit_devices(self, pod: Pod) -> None:
        begin = self.clock.monotonic()
        try:
            await self.admission.admit_devices(pod)
        finally:
            self.manager_metrics.admitted(self.clock.monotonic() - begin)

    def _update_qos(self) -> None:
        with contextlib.suppress(CgroupError):
            self.cgroups.update_qos([self.allocation.allocated(each) for each in self.intake.active()])

    async def _extras(self, pod: Pod, container: AnyContainer) -> ContainerExtras | None:
        if isinstance(container, Container):
            self.actuator.container_started(pod, container)
        return await container_extras(pod, container, self.devices, self.cpus, self.dra)

    async def _prepare_claims(self, pod: Pod) -> None:
        await self.node_metrics.timed_claims("PrepareResources", self.dra.prepare(pod))

    async def _unprepare_claims(self, uid: str) -> None:
        if uid in self.dra.holders():
            await self.node_metrics.timed_claims("UnprepareResources", self.dra.unprepare(uid))

    def _pods_with_claims(self) -> set[str] | None:
        """The uids of pods that may have claims; None while sources have not been heard."""
        if not self.all_sources_heard():
            return None
        return {each.ref.uid for each in self.workers.all()} | {uid_of(each) for each in self.pods.all()}

    async def _wipe_slices(self) -> None:
        await self.reporter.registered.wait()
        await self.dra.wipe()

    def _dra_took(self, driver: str, method: str, code: str, seconds: float) -> None:
        self.node_metrics.dra_calls.observe(seconds, driver, method, code)

    def _csi_volumes(self, tokens: Tokens) -> CSIVolumes:
        root = self.settings.root_dir
        return CSIVolumes(self.csi_drivers, self.attachments, root, self.client, tokens, self._pod_event)

    def _csi_driver_came(self, driver: str) -> None:
        """Try volumes again that wait for a driver."""
        self._wake_all({uid_of(each) for each in self.intake.active()} if self.started.is_set() else set())

    def _csi_took(self, driver: str, method: str, code: str, seconds: float) -> None:
        self.node_metrics.csi_calls.observe(seconds, driver, method, code, "false")

    async def _resize(self, pod: Pod, observed: ObservedPod, restarting: bool) -> None:
        """Give running containers what the pod has been allocated."""
        uid = uid_of(pod)
        self.actuator.pod_started(pod)
        news = False
        try:
            if await self.actuator.resize(pod, observed):
                news = True
                for each in observed.running():
                    self.observing.forget(each.id)
        except ResizeError as error:
            news = self.allocation.note_error(pod, str(error))
            self.clock.call_later(RESIZE_RETRY, self.workers.wake, uid)
        news |= self.allocation.note_progress(pod, restarting or self.actuator.in_progress(pod, observed))
        if news:
            self._update_qos()
            self.workers.wake(uid)  # so that the pod's status says it

    async def _set_cpuset(self, id: str, cpus: str) -> None:
        linux = cri.LinuxContainerResources(cpuset_cpus=cpus)
        await self.runtime.update_container_resources(cri.UpdateContainerResourcesRequest(container_id=id, linux=linux))

    def _problems(self) -> list[str]:
        pleg = self.pleg.problem()
        return [f"PLEG is not healthy: {pleg}" if pleg else "", self.shutdown.message()]

    def _sync_failed(self, pod: Pod, error: Exception) -> None:
        if isinstance(error, CRIError):  # what else fails has an event of its own
            self.recorder.event(pod, WARNING, "FailedSync", f"error determining status: {error}")

    def _streaming(self, ok: bool) -> None:
        (self.node_metrics.event_streams if ok else self.node_metrics.event_stream_errors).inc()

    def _image_pulled(self, uid: str, seconds: float, size: int) -> None:
        self.pod_metrics.pulled(uid, seconds)
        self.node_metrics.pulled(seconds, size)

    def _pod_released(self, uid: str) -> None:
        self.pod_metrics.gone(uid)
        self.admission.released(uid)

    def _pod_event(self, pod: Pod, type: str, reason: str, message: str) -> None:
        self.recorder.event(pod, type, reason, message)

    def node_event(self, type: str, reason: str, message: str) -> None:
        """Tell something about the node."""
        self.recorder.event(self.reporter.reference, type, reason, message)


def _made(folder: Path | None) -> Path | None:
    """Make a folder below /var/log; None without permission: its links are only a convenience."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            log.warning("no links to containers' logs in %s: %s", folder, error.strerror)
            return None
    return folder if folder is not None and os.access(folder, os.W_OK) else None


def _probe_status(probe: ProbeType, result: Result) -> str:
    """The words of upstream's log for a result of a probe."""
    good = result is Result.SUCCESS
    if probe is ProbeType.READINESS:
        return "ready" if good else "not ready"
    if probe is ProbeType.STARTUP:
        return "started" if good else "unhealthy"
    return "healthy" if good else "unhealthy"


def _created(pod: Pod) -> str:
    return (pod.metadata.creation_timestamp if pod.metadata else None) or ""
