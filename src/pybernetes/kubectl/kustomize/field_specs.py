"""The fields that each step of a build changes, by kind, and how files of `configurations` add to them.

The tables are short forms: a spec is (path, kind, group, version, create).
"""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize.order import rank
from pybernetes.kubectl.kustomize.resources import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class FieldSpec:
    """A path in the objects of some kinds; `create`: the path is made where it is missing."""

    __slots__ = ("create", "kind", "path")

    def __init__(self, path: str, kind: str = "", group: str = "", version: str = "", create: bool = False) -> None:
        self.path, self.kind, self.create = path, Kind(group, version, kind), create

    def covers(self, other: FieldSpec) -> bool:
        """Whether the other need not be added: the same path, for these objects or, as kustomize has it, for more."""
        return self.path == other.path and self.kind.selected(other.kind)


class Configuration:
    """The fields of every step. A kustomization's own come first, and those of its bases are added to them."""

    def __init__(self) -> None:
        self.specs: dict[str, list[FieldSpec]] = {name: [] for name in STEPS}
        self.references: list[tuple[Kind, list[FieldSpec]]] = []

    def merge(self, other: Configuration) -> None:
        """Adds what is new in another configuration. Raises CLIError for specs that differ only in `create`."""
        for name, specs in other.specs.items():
            self.specs[name] = sorted(merged(self.specs[name], specs), key=lambda each: rank(each.kind))
        for kind, specs in other.references:
            for known, own in self.references:
                if str(known) == str(kind):
                    own[:] = merged(own, specs)
                    break
            else:
                self.references.append((kind, list(specs)))
        self.references.sort(key=lambda each: rank(each[0]))


STEPS = (
    "namePrefix", "nameSuffix", "namespace", "labels", "commonLabels", "templateLabels", "commonAnnotations",
    "varReference", "images", "replicas",
)  # fmt: skip


def merged(specs: Iterable[FieldSpec], more: Iterable[FieldSpec]) -> list[FieldSpec]:
    """Field specs with others added. Raises CLIError."""
    found = list(specs)
    for spec in more:
        same = next((each for each in found if each.covers(spec)), None)
        if same is None:
            found.append(spec)
        elif same.create != spec.create:
            raise CLIError("conflicting fieldspecs")
    return found


# -- the tables


_PODS = {
    "Pod": "spec", "PodTemplate": "template/spec", "CronJob": "spec/jobTemplate/spec/template/spec",
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"), "spec/template/spec"),
}  # fmt: skip
_CONTROLLED = {
    "Pod": "spec", "CronJob": "spec/jobTemplate/spec/template/spec",
    **dict.fromkeys(("StatefulSet", "Deployment", "ReplicationController", "Job", "DaemonSet"), "spec/template/spec"),
}  # fmt: skip
_RBAC = "rbac.authorization.k8s.io"
_CONTAINERS = ("containers", "initContainers")


def _pods(kinds: dict[str, str], *tails: str) -> list[FieldSpec]:
    return [FieldSpec(f"{base}/{tail}", kind) for kind, base in kinds.items() for tail in tails]


def _template_metadata(field: str) -> list[FieldSpec]:
    """Where labels or annotations of pod templates stand."""
    path = f"spec/template/metadata/{field}"
    return [
        FieldSpec(path, "ReplicationController", version="v1", create=True),
        *(FieldSpec(path, kind, create=True) for kind in ("Deployment", "ReplicaSet", "DaemonSet")),
        FieldSpec(path, "StatefulSet", "apps" if field == "labels" else "", create=True),
        *(
            [FieldSpec("spec/volumeClaimTemplates[]/metadata/labels", "StatefulSet", "apps", create=True)][
                : field == "labels"
            ]
        ),
        FieldSpec(path, "Job", "batch", create=True),
        FieldSpec(f"spec/jobTemplate/metadata/{field}", "CronJob", "batch", create=True),
        FieldSpec(f"spec/jobTemplate/spec/template/metadata/{field}", "CronJob", "batch", create=True),
    ]


def _selectors() -> list[FieldSpec]:
    found = [
        FieldSpec("spec/selector", "Service", version="v1", create=True),
        FieldSpec("spec/selector", "ReplicationController", version="v1", create=True),
        *(
            FieldSpec("spec/selector/matchLabels", kind, create=True)
            for kind in ("Deployment", "ReplicaSet", "DaemonSet")
        ),
        FieldSpec("spec/selector/matchLabels", "StatefulSet", "apps", create=True),
        FieldSpec("spec/selector/matchLabels", "Job", "batch"),
        FieldSpec("spec/jobTemplate/spec/selector/matchLabels", "CronJob", "batch"),
        FieldSpec("spec/selector/matchLabels", "PodDisruptionBudget", "policy"),
    ]
    for path in ("podSelector", "ingress/from/podSelector", "egress/to/podSelector"):
        found.append(FieldSpec(f"spec/{path}/matchLabels", "NetworkPolicy", "networking.k8s.io"))
    for kind in ("Deployment", "StatefulSet"):
        for affinity in ("podAffinity", "podAntiAffinity"):
            base = f"spec/template/spec/affinity/{affinity}"
            soft = "preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm"
            for tail in (soft, "requiredDuringSchedulingIgnoredDuringExecution"):
                found.append(FieldSpec(f"{base}/{tail}/labelSelector/matchLabels", kind, "apps"))
        found.append(FieldSpec("spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels", kind, "apps"))
    return found


def _variable_fields() -> list[FieldSpec]:
    tails = [
        f"{containers}/{field}"
        for containers in _CONTAINERS
        for field in ("args", "command", "env/value", "volumeMounts/mountPath")
    ]
    kinds = {kind: base for kind, base in _PODS.items() if kind != "PodTemplate"}
    found = _pods(kinds, *tails)
    found += [
        FieldSpec(f"{base}/volumes/nfs/server", kind)
        for kind, base in kinds.items()
        if kind not in ("CronJob", "StatefulSet")
    ]
    for path, kind in (
        ("spec/jobTemplate/spec/template/volumes/nfs/server", "CronJob"),
        ("spec/template/metadata/annotations", "Deployment"),
        ("spec/rules/host", "Ingress"), ("spec/tls/hosts", "Ingress"), ("spec/tls/secretName", "Ingress"),
        ("spec/ports/port", "Service"), ("spec/ports/targetPort", "Service"),
        ("spec/volumeClaimTemplates/spec/nfs/server", "StatefulSet"),
        ("spec/nfs/server", "PersistentVolume"), ("metadata/labels", ""), ("metadata/annotations", ""),
    ):  # fmt: skip
        found.append(FieldSpec(path, kind))
    return found


def _references() -> list[tuple[Kind, list[FieldSpec]]]:
    scaled = [FieldSpec("spec/scaleTargetRef/name", "HorizontalPodAutoscaler")]
    found = [
        (Kind("", "", kind), scaled) for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")
    ]
    in_rules = [FieldSpec("rules/resourceNames", kind) for kind in ("Role", "ClusterRole")]
    config_maps = [
        *(f"{each}/env/valueFrom/configMapKeyRef/name" for each in _CONTAINERS),
        *(f"{each}/envFrom/configMapRef/name" for each in _CONTAINERS),
        "volumes/configMap/name",
        "volumes/projected/sources/configMap/name",
    ]
    nginx = "nginx.ingress.kubernetes.io\\/"
    found.append(
        (
            Kind("", "v1", "ConfigMap"),
            [
                *_pods(_PODS, *config_maps),
                FieldSpec("spec/configSource/configMap", "Node"),
                *in_rules,
                FieldSpec(f"metadata/annotations/{nginx}fastcgi-params-configmap", "Ingress"),
            ],
        )
    )
    secrets = [
        *(f"{each}/env/valueFrom/secretKeyRef/name" for each in _CONTAINERS),
        *(f"{each}/envFrom/secretRef/name" for each in _CONTAINERS),
        "imagePullSecrets/name",
        "volumes/secret/secretName",
        "volumes/projected/sources/secret/name",
    ]
    annotations = ("ingress.kubernetes.io\\/auth-secret", f"{nginx}auth-secret", f"{nginx}auth-tls-secret")
    parameters = ("secretName", "adminSecretName", "userSecretName", "secretRef")
    knative = "spec/template/spec/containers/env/valueFrom/secretKeyRef/name"
    found.append(
        (
            Kind("", "v1", "Secret"),
            [
                *_pods(_PODS, *secrets),
                FieldSpec("spec/tls/secretName", "Ingress"),
                *(FieldSpec(f"metadata/annotations/{each}", "Ingress") for each in annotations),
                FieldSpec("imagePullSecrets/name", "ServiceAccount"),
                *(FieldSpec(f"parameters/{each}", "StorageClass") for each in parameters),
                *in_rules,
                FieldSpec(knative, "Service", "serving.knative.dev", "v1"),
                FieldSpec("spec/azureFile/secretName", "PersistentVolume"),
            ],
        )
    )
    ingress = (
        "spec/rules/http/paths/backend/serviceName", "spec/backend/serviceName",
        "spec/rules/http/paths/backend/service/name", "spec/defaultBackend/service/name",
    )  # fmt: skip
    webhooks = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    admission = "admissionregistration.k8s.io"
    bindings = ("RoleBinding", "ClusterRoleBinding")
    found += [
        (
            Kind("", "v1", "Service"),
            [
                FieldSpec("spec/serviceName", "StatefulSet", "apps"),
                *(FieldSpec(path, "Ingress") for path in ingress),
                FieldSpec("spec/service/name", "APIService", "apiregistration.k8s.io"),
                *(FieldSpec("webhooks/clientConfig/service", kind, admission) for kind in webhooks),
            ],
        ),
        (Kind(_RBAC, "", "Role"), [FieldSpec("roleRef/name", "RoleBinding", _RBAC)]),
        (Kind(_RBAC, "", "ClusterRole"), [FieldSpec("roleRef/name", kind, _RBAC) for kind in bindings]),
        (
            Kind("", "v1", "ServiceAccount"),
            [*(FieldSpec("subjects", kind, _RBAC) for kind in bindings), *_pods(_CONTROLLED, "serviceAccountName")],
        ),
        (Kind("", "v1", "PersistentVolumeClaim"), _pods(_CONTROLLED, "volumes/persistentVolumeClaim/claimName")),
        (
            Kind("", "v1", "PersistentVolume"),
            [FieldSpec("spec/volumeName", "PersistentVolumeClaim"), FieldSpec("rules/resourceNames", "ClusterRole")],
        ),
        (
            Kind("storage.k8s.io", "v1", "StorageClass"),
            [
                FieldSpec("spec/storageClassName", "PersistentVolume"),
                FieldSpec("spec/storageClassName", "PersistentVolumeClaim"),
                FieldSpec("spec/volumeClaimTemplates/spec/storageClassName", "StatefulSet"),
            ],
        ),
        (Kind("scheduling.k8s.io", "v1", "PriorityClass"), _pods(_CONTROLLED, "priorityClassName")),
        (Kind("networking.k8s.io/v1", "v1", "IngressClass"), [FieldSpec("spec/ingressClassName", "Ingress")]),
        (
            Kind(admission, "", "ValidatingAdmissionPolicy"),
            [FieldSpec("spec/policyName", "ValidatingAdmissionPolicyBinding", admission)],
        ),
    ]
    return found


def defaults() -> Configuration:
    """kustomize's own fields."""
    found = Configuration()
    metadata_labels = [FieldSpec("metadata/labels", create=True), *_template_metadata("labels")]
    images = [f"{base}/{each}[]/image" for base in ("spec", "spec/template/spec") for each in _CONTAINERS]
    images += [f"{base}/volumes[]/image/reference" for base in ("spec", "spec/template/spec")]
    found.specs |= {
        "namePrefix": [FieldSpec("metadata/name")],
        "nameSuffix": [FieldSpec("metadata/name")],
        "namespace": [
            FieldSpec("metadata/name", "Namespace", create=True),
            FieldSpec("spec/service/namespace", "APIService", "apiregistration.k8s.io", create=True),
            FieldSpec(
                "spec/conversion/webhook/clientConfig/service/namespace",
                "CustomResourceDefinition",
                "apiextensions.k8s.io",
            ),
        ],
        "commonLabels": [*_selectors(), *metadata_labels],
        "templateLabels": metadata_labels,
        "commonAnnotations": [FieldSpec("metadata/annotations", create=True), *_template_metadata("annotations")],
        "images": [FieldSpec(path, create=True) for path in images],
        "replicas": [
            FieldSpec("spec/replicas", kind, create=True)
            for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")
        ],
        "varReference": _variable_fields(),
    }
    found.references = _references()
    return found


# -- from files


def spec_of(value: dict[str, Any]) -> FieldSpec:
    """A field spec of a file."""
    kind, group, version = (str(value.get(key) or "") for key in ("kind", "group", "version"))
    return FieldSpec(str(value.get("path") or ""), kind, group, version, bool(value.get("create")))


def configured(names: list[str], load: Callable[[str], bytes]) -> Configuration:
    """The fields of `configurations`, with kustomize's own. Raises CLIError."""
    from pybernetes.kubectl.kustomize import nodes
    from pybernetes.kubectl.kustomize.settings import CONFIGURATION, decoded

    own = Configuration()
    for name in names:
        content = nodes.parsed(load(name), f"decoding config {name}") or {}
        content = decoded(content, CONFIGURATION, "TransformerConfig", "error unmarshaling JSON: while decoding JSON: ")
        more = Configuration()
        for key, value in content.items():
            if key == "nameReference":
                for each in value or ():
                    kind = Kind(*(str(each.get(part) or "") for part in ("group", "version", "kind")))
                    more.references.append((kind, [spec_of(spec) for spec in each.get("fieldSpecs") or ()]))
            else:
                more.specs[key] = [spec_of(each) for each in value or ()]
        own.merge(more)
    found = defaults()
    found.merge(own)
    return found
