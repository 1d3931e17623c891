"""Shared by the rollout commands: status messages, revisions, and rollback to one."""

from __future__ import annotations

from pybernetes.kubectl.data import dig, dumps
from pybernetes.kubectl.errors import CLIError, StatusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping

REVISION = "deployment.kubernetes.io/revision"
_CAUSE = "kubernetes.io/change-cause"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
)


class Revision:
    """One revision: the object that keeps it, its pod template and why it was made."""

    def __init__(self, source: dict[str, Any], template: dict[str, Any]) -> None:
        self.source = source
        self.template = template
        self.cause = dig(source, "metadata", "annotations", _CAUSE, default="")


def status(obj: dict[str, Any], mapping: Mapping, revision: int = 0) -> tuple[str, bool]:
    """A line about the rollout, and whether it is over. Raises CLIError where it failed."""
    if mapping.kind == "Deployment":
        return _deployment(obj, revision)
    if mapping.kind == "DaemonSet":
        return _daemonset(obj)
    if mapping.kind == "StatefulSet":
        return _statefulset(obj)
    raise CLIError(f"no status viewer has been implemented for {mapping.kind}.{mapping.group}".rstrip("."))


def _deployment(obj: dict[str, Any], revision: int) -> tuple[str, bool]:
    name = obj["metadata"]["name"]
    if revision:
        running = int(dig(obj, "metadata", "annotations", REVISION, default="0"))
        if running != revision:
            raise CLIError(f"desired revision ({revision}) is different from the running revision ({running})")
    state = obj.get("status") or {}
    if obj["metadata"].get("generation", 0) > state.get("observedGeneration", 0):
        return "Waiting for deployment spec update to be observed...\n", False
    for condition in state.get("conditions") or ():
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            raise CLIError(f'deployment "{name}" exceeded its progress deadline')
    wanted = dig(obj, "spec", "replicas", default=1)
    updated, total = state.get("updatedReplicas", 0), state.get("replicas", 0)
    available = state.get("availableReplicas", 0)
    head = f'Waiting for deployment "{name}" rollout to finish:'
    if updated < wanted:
        return f"{head} {updated} out of {wanted} new replicas have been updated...\n", False
    if total > updated:
        return f"{head} {total - updated} old replicas are pending termination...\n", False
    if available < updated:
        return f"{head} {available} of {updated} updated replicas are available...\n", False
    return f'deployment "{name}" successfully rolled out\n', True


def _daemonset(obj: dict[str, Any]) -> tuple[str, bool]:
    name = obj["metadata"]["name"]
    if dig(obj, "spec", "updateStrategy", "type") != "RollingUpdate":
        raise CLIError("rollout status is only available for RollingUpdate strategy type")
    state = obj.get("status") or {}
    if obj["metadata"].get("generation", 0) > state.get("observedGeneration", 0):
        return "Waiting for daemon set spec update to be observed...\n", False
    updated, wanted = state.get("updatedNumberScheduled", 0), state.get("desiredNumberScheduled", 0)
    available = state.get("numberAvailable", 0)
    head = f'Waiting for daemon set "{name}" rollout to finish:'
    if updated < wanted:
        return f"{head} {updated} out of {wanted} new pods have been updated...\n", False
    if available < wanted:
        return f"{head} {available} of {wanted} updated pods are available...\n", False
    return f'daemon set "{name}" successfully rolled out\n', True


def _statefulset(obj: dict[str, Any]) -> tuple[str, bool]:
    if dig(obj, "spec", "updateStrategy", "type") != "RollingUpdate":
        raise CLIError("rollout status is only available for RollingUpdate strategy type")
    state = obj.get("status") or {}
    seen = state.get("observedGeneration", 0)
    if seen == 0 or obj["metadata"].get("generation", 0) > seen:
        return "Waiting for statefulset spec update to be observed...\n", False
    wanted, ready = dig(obj, "spec", "replicas", default=1), state.get("readyReplicas", 0)
    updated = state.get("updatedReplicas", 0)
    if ready < wanted:
        return f"Waiting for {wanted - ready} pods to be ready...\n", False
    partition = dig(obj, "spec", "updateStrategy", "rollingUpdate", "partition")
    if partition is not None:
        if updated < wanted - partition:
            return (
                f"Waiting for partitioned roll out to finish: {updated} out of {wanted - partition}"
                " new pods have been updated...\n"
            ), False
        return f"partitioned roll out complete: {updated} new pods have been updated...\n", True
    if state.get("updateRevision") != state.get("currentRevision"):
        return (
            f"waiting for statefulset rolling update to complete {updated} pods at revision"
            f" {state.get('updateRevision', '')}...\n"
        ), False
    current = state.get("currentReplicas", 0)
    return (
        f"statefulset rolling update complete {current} pods at revision {state.get('currentRevision', '')}...\n"
    ), True


def history(context: Context, info: Info) -> dict[int, Revision]:
    """The revisions of a workload by number. Raises CLIError."""
    if info.mapping.kind == "Deployment":
        return _replicasets(context, info)
    if info.mapping.kind in ("DaemonSet", "StatefulSet"):
        return _controller_revisions(context, info)
    group = info.mapping.group
    label = f"{info.mapping.kind}.{group}" if group else info.mapping.kind
    raise CLIError(f'no history viewer has been implemented for "{label}"')


def _selector(obj: dict[str, Any]) -> str:
    from pybernetes.kubectl.describing.text import selector_text

    return selector_text(dig(obj, "spec", "selector", default={}))


def _owned(items: list[dict[str, Any]], owner: dict[str, Any]) -> list[dict[str, Any]]:
    uid = owner["metadata"].get("uid")
    return [
        item
        for item in items
        if any(
            each.get("uid") == uid and each.get("controller") for each in item["metadata"].get("ownerReferences") or ()
        )
    ]


def _replicasets(context: Context, info: Info) -> dict[int, Revision]:
    path = f"/apis/apps/v1/namespaces/{info.namespace}/replicasets"
    listed = context.client.list(path, {"labelSelector": _selector(info.object)})
    found = {}
    for item in _owned(listed.get("items") or [], info.object):
        item.setdefault("apiVersion", "apps/v1")
        item.setdefault("kind", "ReplicaSet")
        number = int(dig(item, "metadata", "annotations", REVISION, default="0") or 0)
        found[number] = Revision(item, item["spec"]["template"])
    return found


def _controller_revisions(context: Context, info: Info) -> dict[int, Revision]:
    from pybernetes.kubectl.strategic import merge, type_of

    path = f"/apis/apps/v1/namespaces/{info.namespace}/controllerrevisions"
    listed = context.client.list(path, {"labelSelector": _selector(info.object)})
    cls = type_of("apps/v1", info.mapping.kind)
    found = {}
    for item in _owned(listed.get("items") or [], info.object):
        item.setdefault("apiVersion", "apps/v1")
        item.setdefault("kind", "ControllerRevision")
        whole = merge(info.object, item.get("data") or {}, cls)
        found[int(item["revision"])] = Revision(item, whole["spec"]["template"])
    return found


def undo(context: Context, info: Info, wanted: int, dry: str) -> str:
    """Goes back to a revision (0: the one before); returns the words of the message. Raises CLIError."""
    if wanted < 0:
        raise CLIError(f"unable to find specified revision {wanted} in history")
    kind = info.mapping.kind
    if kind not in ("Deployment", "DaemonSet", "StatefulSet"):
        label = f"{kind}.{info.mapping.group}" if info.mapping.group else kind
        raise CLIError(f'no rollbacker has been implemented for "{label}"')
    found = history(context, info)
    numbers = sorted(found)
    if kind != "Deployment" and len(numbers) <= 1 and not wanted:
        raise CLIError("no last revision to roll back to")
    if wanted:
        if wanted not in found:
            raise CLIError(f"unable to find specified revision {wanted} in history")
    elif len(numbers) < 2:
        raise CLIError(f'no rollout history found for deployment "{info.name}"')
    chosen = found[wanted or numbers[-2]]
    number = wanted or numbers[-2]
    if dry == "client":
        from pybernetes.kubectl.describing.pods import template_text

        return f"will roll back to {template_text(chosen.template)}"
    if kind == "Deployment" and dig(info.object, "spec", "paused", default=False):
        raise CLIError(
            "you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again"
        )
    if _bare(chosen.template) == _bare(info.object["spec"]["template"]):
        return f"skipped rollback (current template already matches revision {number})"
    parameters = {"dryRun": "All"} if dry == "server" else {}
    try:
        if kind == "Deployment":
            body = _rollback_patch(info.object, chosen)
            context.client.patch(info.path(), "json", body, parameters)
        else:
            data = chosen.source.get("data") or {}
            context.client.patch(info.path(), "strategic", data, parameters)
    except StatusError as error:
        raise CLIError(f"failed restoring revision {number}: {error.message}") from None
    return "rolled back"


def _bare(template: dict[str, Any]) -> str:
    copied = {**template, "metadata": {**(template.get("metadata") or {})}}
    labels = dict(copied["metadata"].get("labels") or {})
    labels.pop("pod-template-hash", None)
    copied["metadata"]["labels"] = labels
    copied["metadata"].pop("creationTimestamp", None)
    return dumps(copied)


def _rollback_patch(deployment: dict[str, Any], chosen: Revision) -> list[dict[str, Any]]:
    template = {**chosen.template, "metadata": {**(chosen.template.get("metadata") or {})}}
    labels = dict(template["metadata"].get("labels") or {})
    labels.pop("pod-template-hash", None)
    template["metadata"]["labels"] = labels
    annotations = {
        key: value
        for key, value in dig(deployment, "metadata", "annotations", default={}).items()
        if key in _NOT_COPIED
    }
    for key, value in dig(chosen.source, "metadata", "annotations", default={}).items():
        if key not in _NOT_COPIED:
            annotations[key] = value
    return [
        {"op": "replace", "path": "/spec/template", "value": template},
        {"op": "replace", "path": "/metadata/annotations", "value": annotations},
    ]
