"""The order of the result: by kind, so that what others need comes first, or as the objects were found."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pybernetes.kubectl.kustomize.resources import Kind, Resource, Resources

_FIRST = (
    "Namespace", "ResourceQuota", "StorageClass", "CustomResourceDefinition", "ServiceAccount", "PodSecurityPolicy",
    "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ConfigMap", "Secret", "Endpoints", "Service",
    "LimitRange", "PriorityClass", "PersistentVolume", "PersistentVolumeClaim", "Deployment", "StatefulSet", "CronJob",
    "PodDisruptionBudget",
)  # fmt: skip
_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def apply(resources: Resources, options: dict[str, Any] | None) -> None:
    """Sorts the objects as `sortOptions` says. Raises CLIError."""
    options = options or {"order": "legacy"}
    order, kinds = options.get("order") or "", options.get("legacySortOptions")
    if order not in ("fifo", "legacy"):
        raise CLIError("the field 'sortOptions.order' must be one of [fifo, legacy]")
    if order == "fifo":
        if kinds is not None:
            raise CLIError(
                "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'"
            )
        return
    first = _FIRST if kinds is None else kinds.get("orderFirst") or ()
    last = _LAST if kinds is None else kinds.get("orderLast") or ()

    def key(resource: Resource) -> tuple[int, str, str]:
        identity, kind = resource.current(), resource.kind
        return *rank(kind, first, last), f"{kind}|{identity.namespace or '~X'}|{identity.name or '~N'}"

    resources.items.sort(key=key)


def rank(kind: Kind, first: Sequence[str] = _FIRST, last: Sequence[str] = _LAST) -> tuple[int, str]:
    """The place of a kind: those that others need first, those that could stop others last."""
    place = first.index(kind.kind) - len(first) if kind.kind in first else 0
    if kind.kind in last:
        place = last.index(kind.kind) + 1
    return place, f"{kind.group or '~G'}_{kind.version or '~V'}_{kind.kind or '~K'}"
