"""Objects in another version of their API: the versions that Kubernetes once served, and the fields that changed.

Versions of one row have the same fields. Ingresses and autoscalers are converted field by field. Defaults of the server
are not filled in.
"""

from __future__ import annotations

from pybernetes.kubectl.data import copy
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_APPS = ("apps/v1", "apps/v1beta2", "apps/v1beta1", "extensions/v1beta1")
_RBAC = tuple(f"rbac.authorization.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_HOOKS = ("admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1")
# kind -> its versions, the preferred one first
VERSIONS: dict[str, tuple[str, ...]] = {
    "Deployment": _APPS,
    "DaemonSet": ("apps/v1", "apps/v1beta2", "extensions/v1beta1"),
    "ReplicaSet": ("apps/v1", "apps/v1beta2", "extensions/v1beta1"),
    "StatefulSet": _APPS[:3],
    "ControllerRevision": _APPS[:3],
    "CronJob": ("batch/v1", "batch/v1beta1", "batch/v2alpha1"),
    "Ingress": ("networking.k8s.io/v1", "networking.k8s.io/v1beta1", "extensions/v1beta1"),
    "IngressClass": ("networking.k8s.io/v1", "networking.k8s.io/v1beta1"),
    "NetworkPolicy": ("networking.k8s.io/v1", "extensions/v1beta1"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "autoscaling/v2beta2", "autoscaling/v1"),
    "PodDisruptionBudget": ("policy/v1", "policy/v1beta1"),
    **dict.fromkeys(("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"), _RBAC),
    **dict.fromkeys(("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"), _HOOKS),
    **dict.fromkeys(
        ("StorageClass", "VolumeAttachment", "CSIDriver", "CSINode"), ("storage.k8s.io/v1", "storage.k8s.io/v1beta1")
    ),
    "PriorityClass": tuple(f"scheduling.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1")),
    "RuntimeClass": ("node.k8s.io/v1", "node.k8s.io/v1beta1"),
    "Lease": ("coordination.k8s.io/v1", "coordination.k8s.io/v1beta1"),
    "CertificateSigningRequest": ("certificates.k8s.io/v1", "certificates.k8s.io/v1beta1"),
    "ServiceCIDR": ("networking.k8s.io/v1", "networking.k8s.io/v1beta1"),
    "IPAddress": ("networking.k8s.io/v1", "networking.k8s.io/v1beta1"),
}


def convert(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """The object in a version; "" stands for the preferred one. Raises CLIError."""
    kind, old = str(obj.get("kind", "")), str(obj.get("apiVersion", ""))
    known = VERSIONS.get(kind, (old,))
    if old not in known:
        raise CLIError(f'no kind "{kind}" is registered for version "{old}"')
    new = version or known[0]
    if version.count("/") > 1:
        raise CLIError(f"unexpected GroupVersion string: {version}")
    if new not in known:
        groups = {each.partition("/")[0] for each in known}
        served = {"v1", *(each for row in VERSIONS.values() for each in row)}
        if new not in served and new.partition("/")[0] not in groups:
            package = old.partition("/")[0].partition(".")[0] if "/" in old else "core"
            raise CLIError(f'{package}.{kind} is not suitable for converting to "{version}"')
        # A version of another group, as `--output-version=v1` for a mixture of kinds: the object stays as it is.
        if version.partition("/")[0] not in groups:
            return obj
        raise CLIError(f"{kind}: converting {old} to {version} is not known; its versions are {', '.join(known)}")
    found: dict[str, Any] = copy(obj)
    if kind == "Ingress":
        _ingress(found, old == known[0], new == known[0])
    elif kind == "HorizontalPodAutoscaler" and (old == "autoscaling/v1") != (new == "autoscaling/v1"):
        (_metrics_of_percentage if old == "autoscaling/v1" else _percentage_of_metrics)(found)
    found["apiVersion"] = new
    return found


def _ingress(obj: dict[str, Any], new_style: bool, to_new: bool) -> None:
    if new_style == to_new:
        return
    spec = obj.get("spec") or {}
    change = _new_backend if to_new else _old_backend
    names = ("backend", "defaultBackend") if to_new else ("defaultBackend", "backend")
    if names[0] in spec:
        spec[names[1]] = change(spec.pop(names[0]))
    for rule in spec.get("rules") or ():
        for path in (rule.get("http") or {}).get("paths") or ():
            if isinstance(path.get("backend"), dict):
                path["backend"] = change(path["backend"])
            if to_new:
                path.setdefault("pathType", "ImplementationSpecific")


def _new_backend(backend: dict[str, Any]) -> dict[str, Any]:
    if "serviceName" not in backend:
        return backend
    port = backend.get("servicePort")
    service: dict[str, Any] = {"name": backend["serviceName"]}
    if port is not None:
        service["port"] = {"name" if isinstance(port, str) else "number": port}
    return {"service": service}


def _old_backend(backend: dict[str, Any]) -> dict[str, Any]:
    service = backend.get("service")
    if not isinstance(service, dict):
        return backend
    port = service.get("port") or {}
    found = {"serviceName": service.get("name", "")}
    if port:
        found["servicePort"] = port.get("name") or port.get("number")
    return found


def _metrics_of_percentage(obj: dict[str, Any]) -> None:
    spec = obj.get("spec") or {}
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    if percentage is not None:
        target = {"type": "Utilization", "averageUtilization": percentage}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _percentage_of_metrics(obj: dict[str, Any]) -> None:
    spec = obj.get("spec") or {}
    for metric in spec.pop("metrics", None) or ():
        resource = metric.get("resource") or {}
        percentage = (resource.get("target") or {}).get("averageUtilization")
        if resource.get("name") != "cpu" or percentage is None:
            raise CLIError(
                "HorizontalPodAutoscaler: autoscaling/v1 has no field for metrics other than CPU utilization"
            )
        spec["targetCPUUtilizationPercentage"] = percentage
    if spec.pop("behavior", None):
        raise CLIError("HorizontalPodAutoscaler: autoscaling/v1 has no field for behavior")
