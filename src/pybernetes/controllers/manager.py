"""Which controllers there are, and what runs them together.

Controllers have upstream's names, and their old names too. A controller's module is imported only if it shall run:
each brings its kinds along, and a manager with two controllers need not pay for fifty.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pybernetes.component.tasks import Tasks

from .base import Controller, ControllerContext

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """Where a controller is (`module:Class` below this package), and what else it is called."""

    where: str
    alias: str = ""
    default: bool = True


# In the order in which they are started. Upstream starts token Secrets first: others may wait for their tokens.
REGISTRY: dict[str, Entry] = {
    "serviceaccount-token-controller": Entry(
        "serviceaccount_token:ServiceAccountTokenController", "serviceaccount-token"
    ),
    "endpoints-controller": Entry("endpoints.controller:EndpointsController", "endpoint"),
    "endpointslice-controller": Entry("endpointslice.controller:EndpointSliceController", "endpointslice"),
    "endpointslice-mirroring-controller": Entry(
        "endpointslicemirroring.controller:EndpointSliceMirroringController", "endpointslicemirroring"
    ),
    "replicationcontroller-controller": Entry(
        "replicationcontroller:ReplicationControllerController", "replicationcontroller"
    ),
    "pod-garbage-collector-controller": Entry("podgc:PodGarbageCollectorController", "podgc"),
    "resourcequota-controller": Entry("resourcequota.controller:ResourceQuotaController", "resourcequota"),
    "namespace-controller": Entry("namespace.controller:NamespaceController", "namespace"),
    "serviceaccount-controller": Entry("serviceaccount:ServiceAccountController", "serviceaccount"),
    "garbage-collector-controller": Entry("garbagecollector.controller:GarbageCollectorController", "garbagecollector"),
    "daemonset-controller": Entry("daemonset.controller:DaemonSetController", "daemonset"),
    "job-controller": Entry("job.controller:JobController", "job"),
    "deployment-controller": Entry("deployment.controller:DeploymentController", "deployment"),
    "replicaset-controller": Entry("replicaset:ReplicaSetController", "replicaset"),
    "horizontal-pod-autoscaler-controller": Entry(
        "horizontalpodautoscaler.controller:HorizontalPodAutoscalerController", "horizontalpodautoscaling"
    ),
    "disruption-controller": Entry("disruption.controller:DisruptionController", "disruption"),
    "statefulset-controller": Entry("statefulset.controller:StatefulSetController", "statefulset"),
    "cronjob-controller": Entry("cronjob.controller:CronJobController", "cronjob"),
    "certificatesigningrequest-signing-controller": Entry(
        "certificates.signing:CertificateSigningRequestSigningController", "csrsigning"
    ),
    "certificatesigningrequest-approving-controller": Entry(
        "certificates.approving:CertificateSigningRequestApprovingController", "csrapproving"
    ),
    "certificatesigningrequest-cleaner-controller": Entry(
        "certificates.cleaner:CertificateSigningRequestCleanerController", "csrcleaner"
    ),
    "ttl-controller": Entry("ttl:TTLController", "ttl"),
    "bootstrap-signer-controller": Entry(
        "bootstrap.signer:BootstrapSignerController", "bootstrapsigner", default=False
    ),
    "token-cleaner-controller": Entry("bootstrap.tokencleaner:TokenCleanerController", "tokencleaner", default=False),
    "node-ipam-controller": Entry("nodeipam.controller:NodeIpamController", "nodeipam"),
    "node-lifecycle-controller": Entry("nodelifecycle.controller:NodeLifecycleController", "nodelifecycle"),
    "taint-eviction-controller": Entry("tainteviction:TaintEvictionController"),
    "device-taint-eviction-controller": Entry("devicetainteviction:DeviceTaintEvictionController"),
    "persistentvolume-binder-controller": Entry(
        "persistentvolume.binder:PersistentVolumeBinderController", "persistentvolume-binder"
    ),
    "persistentvolume-attach-detach-controller": Entry(
        "persistentvolume.attachdetach:PersistentVolumeAttachDetachController", "attachdetach"
    ),
    "persistentvolume-expander-controller": Entry(
        "persistentvolume.expander:PersistentVolumeExpanderController", "persistentvolume-expander"
    ),
    "clusterrole-aggregation-controller": Entry(
        "clusterroleaggregation:ClusterRoleAggregationController", "clusterrole-aggregation"
    ),
    "persistentvolumeclaim-protection-controller": Entry(
        "pvcprotection:PersistentVolumeClaimProtectionController", "pvc-protection"
    ),
    "persistentvolume-protection-controller": Entry(
        "pvprotection:PersistentVolumeProtectionController", "pv-protection"
    ),
    "volumeattributesclass-protection-controller": Entry("vacprotection:VolumeAttributesClassProtectionController"),
    "ttl-after-finished-controller": Entry("ttlafterfinished:TTLAfterFinishedController", "ttl-after-finished"),
    "root-ca-certificate-publisher-controller": Entry(
        "rootcacertpublisher:RootCACertificatePublisherController", "root-ca-cert-publisher"
    ),
    "ephemeral-volume-controller": Entry("ephemeralvolume:EphemeralVolumeController", "ephemeral-volume"),
    "resourceclaim-controller": Entry("resourceclaim.controller:ResourceClaimController", "resource-claim-controller"),
    "legacy-serviceaccount-token-cleaner-controller": Entry(
        "legacytokencleaner:LegacyServiceAccountTokenCleanerController", "legacy-service-account-token-cleaner"
    ),
    "validatingadmissionpolicy-status-controller": Entry(
        "validatingadmissionpolicystatus:ValidatingAdmissionPolicyStatusController"
    ),
    "service-cidr-controller": Entry("servicecidr:ServiceCIDRController"),
    "service-lb-controller": Entry("servicelb.controller:ServiceLoadBalancerController", "service"),
}


_CLOUD = "it needs a cloud provider, and there are none"
_GATE = "its feature gate {} is off by default, and the feature not supported"

# Upstream's others: to switch one off is fine, to switch one on is refused with the reason.
ABSENT: dict[str, str] = {
    "node-route-controller": _CLOUD,
    "route": _CLOUD,
    "cloud-node-lifecycle-controller": _CLOUD,
    "cloud-node-lifecycle": _CLOUD,
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": _GATE.format("ClusterTrustBundle"),
    "podcertificaterequest-cleaner-controller": _GATE.format("PodCertificateRequest"),
    "podgroup-protection-controller": _GATE.format("GenericWorkload"),
    "resourcepoolstatusrequest-controller": _GATE.format("DRAResourcePoolStatus"),
    "selinux-warning-controller": "it is off by default, and nodes with SELinux are not supported",
    "storage-version-migrator-controller": _GATE.format("StorageVersionMigrator"),
    "storageversion-garbage-collector-controller": _GATE.format("StorageVersionAPI"),
}


def choose(wanted: Sequence[str], known: Iterable[str] | None = None) -> list[str]:
    """The names that a `--controllers` flag means; ValueError if it names what is not there.

    `NAME` is on, `-NAME` is off, `*` stands for all that are on by default. The first that fits decides.
    """
    names = available() if known is None else list(known)
    aliases = {entry.alias: name for name, entry in REGISTRY.items() if entry.alias}
    said: dict[str, bool] = {}
    rest = False
    for word in wanted:
        if word == "*":
            rest = True
            continue
        on, bare = not word.startswith("-"), word.removeprefix("-")
        name = aliases.get(bare, bare)
        if name in ABSENT:
            if on:
                raise ValueError(f"the controller {bare!r} cannot be switched on: {ABSENT[name]}")
            continue
        if name not in names:
            raise ValueError(f"{bare!r} is not in the list of known controllers")
        said.setdefault(name, on)
    return [name for name in names if said.get(name, rest and REGISTRY[name].default)]


def available() -> list[str]:
    """The controllers that this version has."""
    return [name for name, entry in REGISTRY.items() if _exists(entry.where.partition(":")[0])]


def load(name: str) -> type[Controller[Any]]:
    """The class of a controller."""
    module, _, cls = REGISTRY[name].where.partition(":")
    found: type[Controller[Any]] = getattr(import_module(f"{__package__}.{module}"), cls)
    return found


def _exists(module: str) -> bool:
    try:
        return find_spec(f"{__package__}.{module}") is not None
    except ModuleNotFoundError:  # its package does not exist either
        return False


class Manager:
    """Runs controllers in one event loop, on shared caches."""

    def __init__(self, context: ControllerContext, names: Sequence[str]) -> None:
        self.context = context
        self.classes = {name: load(name) for name in names}
        """Imported before there is a server to ask."""
        self.controllers: dict[str, Controller[Any]] = {}
        self.tasks = Tasks("controllers")
        """Every controller by its name, and the sender of events."""
        self.started = asyncio.Event()
        """Set when every controller works."""

    async def run(self) -> None:
        """Run until cancelled. A controller that fails is restarted with back-off and stops no other one.

        What a controller refuses when it is made, such as a flag, is raised.
        """
        context = self.context
        try:
            self.tasks.start("events", context.events.run)
            for name, controller_class in self.classes.items():
                self.controllers[name] = controller_class(context)
            context.informers.start()
            for name, controller in self.controllers.items():
                self.tasks.start(name, controller.run)
                if context.options.controller_start_interval:
                    await context.clock.sleep(context.options.controller_start_interval)
            for controller in self.controllers.values():
                await controller.wait_synced()
            self.started.set()
            await asyncio.Event().wait()
        finally:
            for controller in self.controllers.values():
                controller.queue.shut_down()
            await self.tasks.stop()
            await context.informers.stop()

    def problem(self, name: str) -> str:
        """Why a controller does not work, for its health check; no text if it does."""
        return self.tasks.failed.get(name, "")
