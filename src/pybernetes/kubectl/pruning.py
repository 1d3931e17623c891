"""`kubectl apply --prune`: deletes what was applied before and is in none of the files now; `diff --prune` shows it."""

from __future__ import annotations

from pybernetes.kubectl import deleting, mutating
from pybernetes.kubectl.builder import Info
from pybernetes.kubectl.errors import CLIError, NoMatch, StatusError, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping

_NAMESPACED = (
    "core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/PersistentVolumeClaim", "core/v1/Pod",
    "core/v1/ReplicationController", "core/v1/Secret", "core/v1/Service", "batch/v1/Job", "batch/v1/CronJob",
    "networking.k8s.io/v1/Ingress", "apps/v1/DaemonSet", "apps/v1/Deployment", "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
)  # fmt: skip
_CLUSTER = ("core/v1/Namespace", "core/v1/PersistentVolume")


def prune(context: Context, applied: list[Info], dry: str) -> None:
    """Deletes objects with the last-applied annotation that were not applied this time."""
    flags = context.flags
    kept = {(info.object.get("metadata") or {}).get("uid") for info in applied}
    namespaces = {info.namespace for info in applied if info.namespace} or {context.namespace()}
    for info in candidates(context, kept, namespaces):
        if dry != "client":
            options = deleting.options(flags.number("grace-period"), deleting.cascade(context), dry)
            try:
                context.client.delete(info.path(), options)
            except StatusError as error:
                if not not_found(error):
                    raise
        suffix = {"client": " (dry run)", "server": " (server dry run)"}.get(dry, "")
        context.out(f"{info.label()} pruned{suffix}\n")


def candidates(context: Context, kept: set[object], namespaces: set[str]) -> Iterator[Info]:
    """The applied objects of the namespaces that match `--selector` and whose UID is not among the kept ones."""
    flags = context.flags
    for mapping in mappings(context):
        for namespace in sorted(namespaces) if mapping.namespaced else [""]:
            listed = context.client.list(mapping.path(namespace), {"labelSelector": flags.text("selector")})
            for item in listed.get("items") or ():
                metadata = item["metadata"]
                if mutating.LAST_APPLIED in (metadata.get("annotations") or {}) and metadata.get("uid") not in kept:
                    item.setdefault("apiVersion", mapping.api_version)
                    item.setdefault("kind", mapping.kind)
                    yield Info(mapping, namespace, metadata["name"], item)


def mappings(context: Context) -> list[Mapping]:
    """The kinds to prune. Raises CLIError for an invalid entry of `--prune-allowlist`."""
    words = context.flags.words("prune-allowlist")
    found = []
    for word in words or [*_NAMESPACED, *_CLUSTER]:
        mapping = _mapping(context, word)
        if mapping is not None:
            found.append(mapping)
        elif words:
            group, version, kind = word.split("/")
            shown = version if group == "core" else f"{group}/{version}"
            raise CLIError(f'no matches for kind "{kind}" in version "{shown}"')
    return found


def _mapping(context: Context, word: str) -> Mapping | None:
    parts = word.split("/")
    if len(parts) != 3:
        raise CLIError(f"invalid GroupVersionKind format: {word}, please follow <group/version/kind>")
    group = "" if parts[0] == "core" else parts[0]
    try:
        return context.mapper.kind(f"{group}/{parts[1]}" if group else parts[1], parts[2])
    except NoMatch:
        return None
