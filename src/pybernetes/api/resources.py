"""The table of everything that is served: one `Resource` for each group, version and plural.

Names, verbs, subresources and their order are upstream's discovery documents; storage prefixes are where upstream
keeps the objects in etcd. Two versions of one resource (HorizontalPodAutoscaler, Event) share a prefix and name the
version that is stored.

Nothing here imports a kind: `Resource.type` does so when first asked.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import Kind

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, eq=False)
class Subresource:
    """A part of an object with a path of its own. Without a kind it speaks the kind of its resource."""

    name: str
    verbs: tuple[str, ...]
    kind: str | None = None
    group: str | None = None
    version: str | None = None


@dataclass(frozen=True, eq=False)
class Resource:
    """A served resource: known before its first object is decoded. Compared by identity."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    verbs: tuple[str, ...] = VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    stored: bool = True
    """False for what is answered and forgotten: reviews, bindings, component statuses."""
    storage_prefix: str = ""
    """Where the objects are in the store, with a slash at both ends; empty if they are not."""
    storage_version: str = ""
    """The `apiVersion` of the stored objects."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "singular", self.singular or self.kind.lower())
        put(self, "storage_version", self.storage_version or self.api_version)
        if self.stored:
            put(self, "storage_prefix", self.storage_prefix or f"/registry/{self.plural}/")

    @cached_property
    def api_version(self) -> str:
        """`v1` or `apps/v1`, as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def fullname(self) -> str:
        """`pods` or `deployments.apps`, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def list_kind(self) -> str:
        """The kind of a list of these."""
        return f"{self.kind}List"

    @cached_property
    def package(self) -> str:
        """The package of the group below `pybernetes.api`."""
        return self.group.partition(".")[0] or "core"

    @cached_property
    def path(self) -> str:
        """The URL's prefix of the group and version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @cached_property
    def type(self) -> type[Kind]:
        """The class of the objects."""
        found: type[Kind] = getattr(import_module(f"pybernetes.api.{self.package}.{self.version}"), self.kind)
        return found

    @cached_property
    def storage_version_hash(self) -> str:
        """The hash in discovery of the stored version; empty if the resource is not stored."""
        if not self.stored:
            return ""
        group, _, version = self.storage_version.rpartition("/")
        return b64encode(sha256(f"{group}/{version}/{self.kind}".encode()).digest()[:8]).decode()

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of this name, if there is one."""
        return next((each for each in self.subresources if each.name == name), None)


@dataclass(frozen=True, eq=False)
class Group:
    """A group and its versions, the preferred one first."""

    name: str
    versions: tuple[str, ...] = ("v1",)
    priority: int = 0
    """`groupPriorityMinimum` of the group's APIServices, which orders the groups."""
    version_priorities: tuple[int, ...] = (15,)
    """`versionPriority` of each version's APIService."""

    @property
    def preferred_version(self) -> str:
        """The version a client should use."""
        return self.versions[0]


# In the order of discovery. The group of APIServices comes first of the named ones and has no APIService itself.
GROUPS: tuple[Group, ...] = (
    Group("", priority=18000, version_priorities=(1,)),
    Group("apiregistration.k8s.io", version_priorities=(0,)),
    Group("apps", priority=17800),
    Group("events.k8s.io", priority=17750),
    Group("authentication.k8s.io", priority=17700),
    Group("authorization.k8s.io", priority=17600),
    Group("autoscaling", ("v2", "v1"), priority=17500, version_priorities=(30, 15)),
    Group("batch", priority=17400),
    Group("certificates.k8s.io", priority=17300),
    Group("networking.k8s.io", priority=17200),
    Group("policy", priority=17100),
    Group("rbac.authorization.k8s.io", priority=17000),
    Group("storage.k8s.io", priority=16800),
    Group("admissionregistration.k8s.io", priority=16700),
    Group("apiextensions.k8s.io", priority=16700),
    Group("scheduling.k8s.io", priority=16600),
    Group("coordination.k8s.io", priority=16500),
    Group("node.k8s.io", priority=16300),
    Group("discovery.k8s.io", priority=16200),
    Group("resource.k8s.io", priority=16200, version_priorities=(21,)),
    Group("flowcontrol.apiserver.k8s.io", priority=16100, version_priorities=(21,)),
)

STATUS = Subresource("status", ("get", "patch", "update"))
SCALE = Subresource("scale", ("get", "patch", "update"), kind="Scale", group="autoscaling", version="v1")

# Groups in the order above, resources by name.
RESOURCES: tuple[Resource, ...] = (
    Resource("", "v1", "bindings", "Binding", verbs=("create",), stored=False),
    Resource(
        "",
        "v1",
        "componentstatuses",
        "ComponentStatus",
        namespaced=False,
        verbs=("get", "list"),
        short_names=("cs",),
        stored=False,
    ),
    Resource("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Resource("", "v1", "endpoints", "Endpoints", short_names=("ep",), storage_prefix="/registry/services/endpoints/"),
    Resource("", "v1", "events", "Event", short_names=("ev",)),
    Resource("", "v1", "limitranges", "LimitRange", short_names=("limits",)),
    Resource(
        "",
        "v1",
        "namespaces",
        "Namespace",
        namespaced=False,
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        short_names=("ns",),
        subresources=(
            Subresource("finalize", ("update",)),
            STATUS,
        ),
    ),
    Resource(
        "",
        "v1",
        "nodes",
        "Node",
        namespaced=False,
        short_names=("no",),
        subresources=(
            Subresource("proxy", ("create", "delete", "get", "patch", "update"), kind="NodeProxyOptions"),
            STATUS,
        ),
        storage_prefix="/registry/minions/",
    ),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short_names=("pvc",), subresources=(STATUS,)),
    Resource(
        "", "v1", "persistentvolumes", "PersistentVolume", namespaced=False, short_names=("pv",), subresources=(STATUS,)
    ),
    Resource(
        "",
        "v1",
        "pods",
        "Pod",
        short_names=("po",),
        categories=("all",),
        subresources=(
            Subresource("attach", ("create", "get"), kind="PodAttachOptions"),
            Subresource("binding", ("create",), kind="Binding"),
            Subresource("ephemeralcontainers", ("get", "patch", "update")),
            Subresource("eviction", ("create",), kind="Eviction", group="policy", version="v1"),
            Subresource("exec", ("create", "get"), kind="PodExecOptions"),
            Subresource("log", ("get",)),
            Subresource("portforward", ("create", "get"), kind="PodPortForwardOptions"),
            Subresource("proxy", ("create", "delete", "get", "patch", "update"), kind="PodProxyOptions"),
            Subresource("resize", ("get", "patch", "update")),
            STATUS,
        ),
    ),
    Resource("", "v1", "podtemplates", "PodTemplate"),
    Resource(
        "",
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        categories=("all",),
        subresources=(
            SCALE,
            STATUS,
        ),
        storage_prefix="/registry/controllers/",
    ),
    Resource("", "v1", "resourcequotas", "ResourceQuota", short_names=("quota",), subresources=(STATUS,)),
    Resource("", "v1", "secrets", "Secret"),
    Resource(
        "",
        "v1",
        "serviceaccounts",
        "ServiceAccount",
        short_names=("sa",),
        subresources=(
            Subresource("token", ("create",), kind="TokenRequest", group="authentication.k8s.io", version="v1"),
        ),
    ),
    Resource(
        "",
        "v1",
        "services",
        "Service",
        short_names=("svc",),
        categories=("all",),
        subresources=(
            Subresource("proxy", ("create", "delete", "get", "patch", "update"), kind="ServiceProxyOptions"),
            STATUS,
        ),
        storage_prefix="/registry/services/specs/",
    ),
    Resource(
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        "APIService",
        namespaced=False,
        categories=("api-extensions",),
        subresources=(STATUS,),
        storage_prefix="/registry/apiregistration.k8s.io/apiservices/",
    ),
    Resource("apps", "v1", "controllerrevisions", "ControllerRevision"),
    Resource("apps", "v1", "daemonsets", "DaemonSet", short_names=("ds",), categories=("all",), subresources=(STATUS,)),
    Resource(
        "apps",
        "v1",
        "deployments",
        "Deployment",
        short_names=("deploy",),
        categories=("all",),
        subresources=(
            SCALE,
            STATUS,
        ),
    ),
    Resource(
        "apps",
        "v1",
        "replicasets",
        "ReplicaSet",
        short_names=("rs",),
        categories=("all",),
        subresources=(
            SCALE,
            STATUS,
        ),
    ),
    Resource(
        "apps",
        "v1",
        "statefulsets",
        "StatefulSet",
        short_names=("sts",),
        categories=("all",),
        subresources=(
            SCALE,
            STATUS,
        ),
    ),
    Resource("events.k8s.io", "v1", "events", "Event", short_names=("ev",), storage_version="v1"),
    Resource(
        "authentication.k8s.io",
        "v1",
        "selfsubjectreviews",
        "SelfSubjectReview",
        namespaced=False,
        verbs=("create",),
        stored=False,
    ),
    Resource(
        "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False, verbs=("create",), stored=False
    ),
    Resource(
        "authorization.k8s.io",
        "v1",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        verbs=("create",),
        stored=False,
    ),
    Resource(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
        verbs=("create",),
        stored=False,
    ),
    Resource(
        "authorization.k8s.io",
        "v1",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        namespaced=False,
        verbs=("create",),
        stored=False,
    ),
    Resource(
        "authorization.k8s.io",
        "v1",
        "subjectaccessreviews",
        "SubjectAccessReview",
        namespaced=False,
        verbs=("create",),
        stored=False,
    ),
    Resource(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        short_names=("hpa",),
        categories=("all",),
        subresources=(STATUS,),
    ),
    Resource(
        "autoscaling",
        "v1",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        short_names=("hpa",),
        categories=("all",),
        subresources=(STATUS,),
        storage_version="autoscaling/v2",
    ),
    Resource("batch", "v1", "cronjobs", "CronJob", short_names=("cj",), categories=("all",), subresources=(STATUS,)),
    Resource("batch", "v1", "jobs", "Job", categories=("all",), subresources=(STATUS,)),
    Resource(
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        namespaced=False,
        short_names=("csr",),
        subresources=(
            Subresource("approval", ("get", "patch", "update")),
            STATUS,
        ),
    ),
    Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False),
    Resource(
        "networking.k8s.io",
        "v1",
        "ingresses",
        "Ingress",
        short_names=("ing",),
        subresources=(STATUS,),
        storage_prefix="/registry/ingress/",
    ),
    Resource("networking.k8s.io", "v1", "ipaddresses", "IPAddress", namespaced=False, short_names=("ip",)),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", short_names=("netpol",)),
    Resource("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", namespaced=False, subresources=(STATUS,)),
    Resource(
        "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short_names=("pdb",), subresources=(STATUS,)
    ),
    Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False, short_names=("sc",)),
    Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False, subresources=(STATUS,)),
    Resource(
        "storage.k8s.io",
        "v1",
        "volumeattributesclasses",
        "VolumeAttributesClass",
        namespaced=False,
        short_names=("vac",),
    ),
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        namespaced=False,
        categories=("api-extensions",),
        subresources=(STATUS,),
    ),
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(STATUS,),
        storage_prefix="/registry/apiextensions.k8s.io/customresourcedefinitions/",
    ),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, short_names=("pc",)),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
    Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False),
    Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", subresources=(STATUS,)),
    Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False),
    Resource(
        "flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", namespaced=False, subresources=(STATUS,)
    ),
    Resource(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "prioritylevelconfigurations",
        "PriorityLevelConfiguration",
        namespaced=False,
        subresources=(STATUS,),
    ),
)

OPTIONAL: tuple[tuple[Resource, int], ...] = (
    (
        Resource(
            "admissionregistration.k8s.io",
            "v1alpha1",
            "initializerconfigurations",
            "InitializerConfiguration",
            namespaced=False,
        ),
        9,
    ),
    (Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False, verbs=("get", "list"), stored=False), 100),
    (Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", verbs=("get", "list"), stored=False), 100),
)
"""Versions that are only served if --runtime-config enables them, with their priority."""

ELSEWHERE = frozenset({"metrics.k8s.io"})
"""Groups that upstream's API server leaves to others: `api/all=true` does not mean them."""
