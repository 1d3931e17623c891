"""`kubectl drain`: cordons nodes and removes their pods."""

from __future__ import annotations

import time

from pybernetes.kubectl import mutating
from pybernetes.kubectl.ages import timestamp
from pybernetes.kubectl.builder import Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.cordoning import cordon, nodes
from pybernetes.kubectl.data import dig, go_quote
from pybernetes.kubectl.errors import Aggregate, CLIError, StatusError, not_found, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_RETRY = 5.0
_MIRROR = "kubernetes.io/config.mirror"


def run(context: Context, arguments: list[str]) -> int | None:
    """`drain`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    if flags.text("pod-selector"):
        from pybernetes.kubectl.selectors import matches

        try:
            matches(flags.text("pod-selector"), {})
        except CLIError:
            raise CLIError("--pod-selector=<pod_selector> must be a valid label selector") from None
    found = nodes(context, arguments)
    for info in found:
        cordon(context, info, True, dry)
    drained: set[str] = set()
    errors: list[CLIError] = []
    for info in found:
        try:
            _drain(context, info, dry)
            drained.add(info.name)
            context.out(mutating.printer_for(flags, "drained", dry)(info.object))
        except CLIError as error:
            errors.append(error)
            shown = (
                error.message if not isinstance(error, Aggregate) else f"[{', '.join(e.message for e in error.errors)}]"
            )
            context.err(f'error: unable to drain node "{info.name}" due to error: {shown}, continuing command...\n')
    remaining = [info.name for info in found if info.name not in drained]
    if remaining:
        context.err("There are pending nodes to be drained:\n" + "".join(f" {name}\n" for name in remaining))
        flat: list[CLIError] = []
        for each in errors:
            flat += each.errors if isinstance(each, Aggregate) else [each]
        from pybernetes.kubectl.errors import PlainError

        raise PlainError("".join(f"{each.message}\n" for each in flat))
    return None


def _drain(context: Context, info: Info, dry: str) -> None:
    flags = context.flags
    parameters = {"fieldSelector": f"spec.nodeName={info.name}", "labelSelector": flags.text("pod-selector")}
    listed = context.client.list("/api/v1/pods", parameters, flags.number("chunk-size"))
    problems: dict[str, list[str]] = {}
    warnings: dict[str, list[str]] = {}
    chosen = []
    for pod in listed.get("items") or ():
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        delete, problem, warning = _judge(context, pod)
        if problem:
            problems.setdefault(problem, []).append(name)
        elif warning:
            warnings.setdefault(warning, []).append(name)
        if delete and not problem:
            chosen.append(pod)
    if problems:
        raise_all([CLIError(f"cannot delete {why}: {', '.join(sorted(names))}") for why, names in problems.items()])
    if warnings:
        context.err("Warning: " + "; ".join(f"{why}: {', '.join(names)}" for why, names in warnings.items()) + "\n")
    for pod in chosen:
        if dry == "client":
            verb = "deleting" if flags.on("disable-eviction") else "evicting"
            context.out(f"{verb} pod {pod['metadata']['namespace']}/{pod['metadata']['name']} (dry run)\n")
    if dry != "client":
        _remove(context, chosen, dry)


def _judge(context: Context, pod: dict[str, Any]) -> tuple[bool, str, str]:
    """Whether a pod is removed, why it cannot be, and what to warn of."""
    flags = context.flags
    metadata, phase = pod["metadata"], dig(pod, "status", "phase", default="")
    deleted, limit = timestamp(metadata.get("deletionTimestamp")), flags.number("skip-wait-for-delete-timeout")
    if deleted is not None and 0 < limit < time.time() - deleted:
        return False, "", ""
    if _MIRROR in (metadata.get("annotations") or {}):
        return False, "", ""
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
    finished = phase in ("Succeeded", "Failed")
    if owner and owner["kind"] == "DaemonSet" and not finished:
        if _exists(context, metadata["namespace"], owner["name"]):
            if not flags.on("ignore-daemonsets"):
                return False, "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)", ""
            return False, "", "ignoring DaemonSet-managed Pods"
        if not flags.on("force"):
            return False, "Pods that declare no controller (use --force to override)", ""
    local = any("emptyDir" in volume for volume in dig(pod, "spec", "volumes", default=[]))
    if local and not finished and not flags.on("delete-emptydir-data"):
        return False, "Pods with local storage (use --delete-emptydir-data to override)", ""
    if owner is None and not finished:
        if not flags.on("force"):
            return False, "Pods that declare no controller (use --force to override)", ""
        return True, "", "deleting Pods that declare no controller"
    return True, "", ""


def _exists(context: Context, namespace: str, name: str) -> bool:
    try:
        context.client.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}")
        return True
    except StatusError as error:
        if not_found(error):
            return False
        raise


def _remove(context: Context, pods: list[dict[str, Any]], dry: str) -> None:
    """Evicts or deletes the pods and waits until they are gone; a budget that refuses one holds up no other."""
    flags = context.flags
    timeout = flags["timeout"]
    deadline = time.monotonic() + timeout if timeout else None
    grace = flags.number("grace-period")
    options: dict[str, Any] = {"gracePeriodSeconds": grace} if grace >= 0 else {}
    if dry == "server":
        options["dryRun"] = ["All"]
    pending = list(pods)
    while pending:
        pending = [pod for pod in pending if not _evict(context, pod, options, dry)]
        if not pending:
            break
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            where = [f'pods/{go_quote(pod["metadata"]["name"])} -n "{pod["metadata"]["namespace"]}"' for pod in pending]
            raise Aggregate(
                [CLIError(f"error when evicting {each}: global timeout reached: {timeout:g}s") for each in where]
            )
        context.flush()
        time.sleep(_RETRY if left is None else min(_RETRY, left))
    if dry == "none":
        _wait(context, pods, deadline, timeout)


def _evict(context: Context, pod: dict[str, Any], options: dict[str, Any], dry: str) -> bool:
    """Asks for the removal of one pod; False where the server wants to be asked again. Raises CLIError."""
    metadata = pod["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    deleting = context.flags.on("disable-eviction")
    suffix = " (server dry run)" if dry == "server" else ""
    if not deleting:
        context.out(f"evicting pod {namespace}/{name}{suffix}\n")
    try:
        if deleting:
            context.client.delete(path, options)
        else:
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
            context.client.post(f"{path}/eviction", {**body, "deleteOptions": options})
        return True
    except StatusError as error:
        if not_found(error):
            return True
        what = f'error when evicting pods/"{name}" -n "{namespace}"'
        terminating = error.reason == "Forbidden" and error.causes("NamespaceTerminating")
        if terminating and metadata.get("deletionTimestamp"):
            return True
        if error.reason != "TooManyRequests" and not terminating:
            raise error if deleting else CLIError(f"{what}: {error.message}") from None
        context.err(f"{what} (will retry after 5s): {error.message}\n")
        return False


def _wait(context: Context, pods: list[dict[str, Any]], deadline: float | None, timeout: float) -> None:
    """Waits until the pods are gone, but for those that were to be gone longer ago than --skip-wait-... says."""
    from pybernetes.kubectl.deleting import wait_gone

    mapping = context.mapper.resource("pods")
    verb = "deleted" if context.flags.on("disable-eviction") else "evicted"
    skip = context.flags.number("skip-wait-for-delete-timeout")
    for pod in pods:
        info = Info(mapping, pod["metadata"]["namespace"], pod["metadata"]["name"], pod)
        while True:
            left = max(deadline - time.monotonic(), 0.001) if deadline else 0.0
            gone = wait_gone(context, info, min(left or 1.0, 1.0) if skip > 0 else left, pod["metadata"].get("uid", ""))
            if gone:
                context.out(f"pod/{info.name} {verb}\n")
                break
            if skip <= 0 or (deadline is not None and time.monotonic() >= deadline):
                raise CLIError(
                    f'error when waiting for pod "{info.name}" in namespace "{info.namespace}" to terminate:'
                    f" global timeout reached: {timeout:g}s"
                )
            if _overdue(context, info, skip):
                break


def _overdue(context: Context, info: Info, seconds: int) -> bool:
    """Whether a pod should have been gone longer ago than some seconds."""
    try:
        found = context.client.get(info.path())
    except StatusError as error:
        if not_found(error):
            return False  # the next look finds it gone
        raise
    deleted = timestamp((found.get("metadata") or {}).get("deletionTimestamp"))
    return deleted is not None and time.time() - deleted > seconds


COMMAND = Command(
    "drain NODE",
    "Drain node in preparation for maintenance",
    run,
    flags=(
        *mutating.PRINT_FLAGS[:0],
        Flag("output", hidden=True),
        mutating.DRY_RUN,
        mutating.SELECTOR,
        Flag("chunk-size", "int", 500, "Objects in one response of a list."),
        Flag("delete-emptydir-data", "bool", help="Go on although pods use emptyDir."),
        Flag("disable-eviction", "bool", help="Delete pods instead of evicting them."),
        Flag("force", "bool", help="Go on although there are pods without a controller."),
        Flag("grace-period", "int", -1, "Seconds that pods get to end; negative means their own."),
        Flag("ignore-daemonsets", "bool", help="Leave pods of DaemonSets."),
        Flag("pod-selector", help="Only these pods."),
        Flag("skip-wait-for-delete-timeout", "int", 0, "Do not wait for pods deleted longer ago than this."),
        Flag("timeout", "duration", help="How long to wait; 0 has no limit."),
    ),
)
