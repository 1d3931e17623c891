"""Makes the parts that keep a node in order from a kubelet's parts and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybernetes.client.keys import uid_of
from pybernetes.cri import v1 as cri

from .config.load import seconds
from .container.config import pod_logs_folder
from .container.log_rotation import LogRotator
from .eviction.manager import EvictionManager
from .eviction.source import NodeSource
from .eviction.thresholds import parse_thresholds
from .gc.containers import ContainerCollector
from .gc.images import ImageCollector
from .gc.orphaned_pods import Housekeeping
from .gc.written_files import WrittenFiles
from .node.shutdown import ShutdownManager, periods

if TYPE_CHECKING:
    from .kubelet import Kubelet


def shutdown_manager(kubelet: Kubelet) -> ShutdownManager:
    """The manager that ends pods before the machine shuts down."""
    config = kubelet.settings.config
    by_priority = [
        (each.priority or 0, each.shutdown_grace_period_seconds or 0)
        for each in config.shutdown_grace_period_by_pod_priority or ()
    ]
    return ShutdownManager(
        kubelet.settings.root_dir,
        periods=periods(
            seconds(config.shutdown_grace_period), seconds(config.shutdown_grace_period_critical_pods), by_priority
        ),
        active_pods=kubelet.intake.active,
        kill=kubelet.evicting.shut_down,
        clock=kubelet.clock,
        changed=kubelet.node_changed,
        event=kubelet.node_event,
    )


def container_collector(kubelet: Kubelet) -> ContainerCollector:
    """The collector of dead containers."""
    settings = kubelet.settings
    return ContainerCollector(
        kubelet.runtime,
        kubelet.clock,
        kubelet.pleg.all,
        settings.container_logs_dir,
        keep=settings.maximum_dead_containers_per_container,
        keep_in_all=settings.maximum_dead_containers,
        least_age=settings.minimum_container_ttl,
    )


def image_collector(kubelet: Kubelet) -> ImageCollector:
    """The collector of unused images."""
    config = kubelet.settings.config
    return ImageCollector(
        kubelet.runtime,
        kubelet.clock,
        kubelet.pulled,
        kubelet.node_event,
        high=config.image_gc_high_threshold_percent or 85,
        low=config.image_gc_low_threshold_percent or 80,
        least_age=seconds(config.image_minimum_gc_age),
        greatest_age=seconds(config.image_maximum_gc_age),
    )


def log_rotator(kubelet: Kubelet) -> LogRotator:
    """The rotation of container logs."""
    config = kubelet.settings.config

    async def reopen(id: str) -> None:
        await kubelet.runtime.reopen_container_log(cri.ReopenContainerLogRequest(container_id=id))

    return LogRotator(
        max_size=config.container_log_max_size or "10Mi",
        max_files=config.container_log_max_files or 5,
        interval=seconds(config.container_log_monitor_interval),
        workers=config.container_log_max_workers or 1,
        running=lambda: [(found.id, found.log_path) for each in kubelet.pleg.all() for found in each.running()],
        reopen=reopen,
        clock=kubelet.clock,
    )


def written_files(kubelet: Kubelet) -> WrittenFiles:
    """The limit on files of the kubelet that pods can grow."""
    pods = kubelet.settings.root_dir / "pods"
    return WrittenFiles(
        folders=lambda: [pods / each.uid for each in kubelet.pleg.all() if any(each.running())],
        clock=kubelet.clock,
    )


def housekeeping(kubelet: Kubelet) -> Housekeeping:
    """The collector of containerd's leftovers."""
    return Housekeeping(
        kubelet.pods,
        kubelet.workers,
        kubelet.intake,
        kubelet.pleg,
        kubelet.volumes,
        kubelet.cgroups,
        kubelet.allocation,
        kubelet.actuator,
        kubelet.mirrors,
        kubelet.backoff,
        kubelet.clock,
        kubelet.all_sources_heard,
        kubelet.settings.pod_logs_dir,
        kubelet.settings.container_logs_dir,
    )


async def eviction_manager(kubelet: Kubelet) -> EvictionManager:
    """The eviction manager for memory, disk and processes; asks the runtime where its images are."""
    settings, config = kubelet.settings, kubelet.settings.config
    source = await NodeSource.create(
        settings.root_dir,
        kubelet.runtime,
        cgroups=kubelet.cgroups,
        reader=kubelet.usage,
        pod_logs=lambda pod: pod_logs_folder(settings.pod_logs_dir, pod),
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
        active_pods=lambda: [kubelet.allocation.allocated(each) for each in kubelet.intake.active()],
        evict=kubelet.evicting.evict,
        clock=kubelet.clock,
        pressure_transition_period=seconds(config.eviction_pressure_transition_period),
        max_pod_grace=config.eviction_max_pod_grace_period or 0,
        reclaim_containers=lambda: kubelet.containers_gc.collect(all_dead=True),
        reclaim_images=kubelet.images_gc.delete_unused,
        cleaned_up=lambda pod: not kubelet.volumes.has_volumes(uid_of(pod)),
        event=kubelet.node_event,
        changed=kubelet.node_changed,
        evicted=kubelet.metrics.evictions.inc,
    )
