"""`kubectl logs`: of a pod, a workload or a selector; `-f` with a selector follows pods as they come and go.

Beyond upstream: `NAME~` takes every pod whose name holds NAME, `--regex` every pod that matches, and on a terminal each
pod has a colour of its own.
"""

from __future__ import annotations

import os
import sys

from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, StatusError, not_found, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_COLORS = (32, 33, 34, 35, 36, 92, 93, 94, 95, 96)


def run(context: Context, arguments: list[str]) -> int | None:
    """`logs`."""
    flags = context.flags
    usage = "\nSee 'kubectl logs -h' for help and examples"
    expected = (
        "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\n"
        "POD or TYPE/NAME is a required argument for the logs command"
    )
    many = bool(flags.text("selector") or flags.text("regex"))
    fuzzy = bool(arguments) and arguments[0].endswith("~")
    if not arguments and not many:
        raise CLIError(expected + usage)
    if arguments and many:
        raise CLIError("only a selector (-l) or a POD name is allowed" + usage)
    if len(arguments) > 2:
        raise CLIError(expected + usage)
    _check(context)
    if flags.text("container") and len(arguments) == 2:
        raise CLIError("only one of -c or an inline [CONTAINER] arg is allowed")
    container = flags.text("container") or (arguments[1] if len(arguments) == 2 else "")
    if container and flags.on("all-containers") and flags.text("container"):
        raise CLIError("--all-containers=true should not be specified with container name " + container)
    parameters = _parameters(context)
    pods = _pods(context, arguments[0] if arguments else "")
    targets = [
        target for pod in pods for target in _containers(context, pod, container, len(pods) > 1 or many or fuzzy)
    ]
    if flags.on("follow") and (len(targets) > 1 or many or fuzzy):
        from pybernetes.kubectl.following import follow

        return follow(context, targets, parameters, arguments[0] if arguments else "", container)
    prefix = flags.on("prefix") or (fuzzy and len(targets) > 1)
    for pod, name in targets:
        _print(context, pod, name, parameters, prefix)
    return None


def _check(context: Context) -> None:
    flags = context.flags
    if flags.changed("since") and flags.text("since-time"):
        raise CLIError("at most one of `sinceTime` or `sinceSeconds` may be specified")
    since = flags.text("since-time")
    if since:
        from pybernetes.kubectl.ages import timestamp

        if timestamp(since) is None:
            layout = "2006-01-02T15:04:05Z07:00"
            raise CLIError(f'parsing time "{since}" as "{layout}": cannot parse "{since}" as "2006"')
    if flags.changed("tail") and flags.number("tail") < -1:
        raise CLIError("--tail must be greater than or equal to -1")
    if flags.changed("limit-bytes") and flags.number("limit-bytes") <= 0:
        raise CLIError("--limit-bytes must be greater than 0")


def _parameters(context: Context) -> dict[str, Any]:
    flags = context.flags
    found: dict[str, Any] = {
        "follow": flags.on("follow"),
        "previous": flags.on("previous"),
        "timestamps": flags.on("timestamps"),
        "insecureSkipTLSVerifyBackend": flags.on("insecure-skip-tls-verify-backend"),
        "sinceTime": flags.text("since-time"),
    }
    if flags.changed("since"):
        found["sinceSeconds"] = int(flags["since"])
    if flags.number("limit-bytes"):
        found["limitBytes"] = flags.number("limit-bytes")
    tail = flags.number("tail")
    if tail >= 0:
        found["tailLines"] = tail
    elif flags.text("selector") and not flags.changed("tail"):
        found["tailLines"] = 10
    return found


def _pods(context: Context, word: str) -> list[dict[str, Any]]:
    flags = context.flags
    namespace = context.namespace()
    path = f"/api/v1/namespaces/{namespace}/pods"
    if flags.text("selector"):
        found = context.client.list(path, {"labelSelector": flags.text("selector")}).get("items") or []
        if not found and not flags.on("follow"):
            context.err(f"No resources found in {namespace} namespace.\n")
        return list(found)
    if flags.text("regex") or word.endswith("~"):
        pattern = name_pattern(flags.text("regex"), word)
        listed = context.client.list(path, {}).get("items") or []
        matched = [pod for pod in listed if pattern.search(pod["metadata"]["name"])]
        if not matched and not flags.on("follow"):
            raise CLIError(f'no pod of namespace "{namespace}" matches "{flags.text("regex") or word[:-1]}"')
        return matched
    builder = Builder(context).arguments([word] if "/" in word else ["pods", word])
    infos = builder.infos()
    for error in builder.errors:
        if not_found(error) and "/" not in word:
            message = f'pods "{word}" not found in namespace "{namespace}"'
            raise CLIError(f"error from server (NotFound): {message}") from None
        if not_found(error):
            raise CLIError(f'error from server (NotFound): {error.message} in namespace "{namespace}"') from None
    raise_all(builder.errors)
    info = infos[0]
    if info.mapping.kind == "Pod":
        return [info.object]
    return _workload(context, info.object, info.mapping.resource, info.mapping.kind)


def name_pattern(regex: str, word: str) -> Any:
    """The pattern for names of pods: `--regex`, or the part of a name before `~`. Raises CLIError."""
    import re

    try:
        return re.compile(regex or (re.escape(word[:-1]) if word.endswith("~") else ""))
    except re.error as error:
        raise CLIError(f"--regex {regex!r}: {error}") from None


def _workload(context: Context, obj: dict[str, Any], resource: str, kind: str) -> list[dict[str, Any]]:
    from pybernetes.kubectl.pod_lookup import _rank, pods_selector

    namespace = obj["metadata"].get("namespace", "")
    try:
        selector = pods_selector(obj, resource)
    except CLIError:
        raise CLIError(f"cannot get the logs from *v1.{kind}: selector for *v1.{kind} not implemented") from None
    listed = context.client.get(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})
    found = sorted(listed.get("items") or (), key=_rank)
    if not found:
        raise CLIError("timed out waiting for the condition")
    if context.flags.on("all-pods"):
        return found
    if len(found) > 1:
        context.err(f"Found {len(found)} pods, using pod/{found[0]['metadata']['name']}\n")
    return found[:1]


def _containers(context: Context, pod: dict[str, Any], wanted: str, quiet: bool) -> list[tuple[dict[str, Any], str]]:
    spec = pod.get("spec") or {}
    every = [
        each["name"] for key in ("initContainers", "containers", "ephemeralContainers") for each in spec.get(key) or ()
    ]
    name = pod["metadata"]["name"]
    if wanted:
        if wanted not in every:
            raise CLIError(f"container {wanted} is not valid for pod {name} out of: {', '.join(every)}")
        return [(pod, wanted)]
    if context.flags.on("all-containers"):
        return [(pod, each) for each in every]
    default = dig(pod, "metadata", "annotations", "kubectl.kubernetes.io/default-container")
    if default in every:
        return [(pod, str(default))]
    main = [each["name"] for each in spec.get("containers") or ()]
    if len(every) > 1:
        names = [*main, *(f"{each['name']} (init)" for each in spec.get("initContainers") or ())]
        names += [f"{each['name']} (ephem)" for each in spec.get("ephemeralContainers") or ()]
        context.err(f'Defaulted container "{main[0]}" out of: {", ".join(names)}\n')
    return [(pod, main[0])]


def label_for(pod: dict[str, Any], container: str, color: bool) -> bytes:
    """The prefix of a line: `[pod/NAME/CONTAINER] `."""
    text = f"[pod/{pod['metadata']['name']}/{container}] "
    if color:
        from zlib import crc32

        text = f"\033[{_COLORS[crc32(text.encode()) % len(_COLORS)]}m{text}\033[0m"
    return text.encode()


def _print(context: Context, pod: dict[str, Any], container: str, parameters: dict[str, Any], prefix: bool) -> None:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata.get('namespace', context.namespace())}/pods/{metadata['name']}/log"
    try:
        response = context.client.open("GET", path, {**parameters, "container": container}, accept="*/*", timeout=0)
    except StatusError as error:
        if context.flags.on("ignore-errors"):
            context.err(f"error: {error.message}\n")
            return
        raise
    sys.stdout.flush()
    head = label_for(pod, container, context.terminal()) if prefix else b""
    try:
        if not head:
            for piece in response.pieces():
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            return
        for line in response.lines():
            os.write(1, head + line + b"\n")
    except (EOFError, ValueError, ConnectionError) as error:
        if not context.flags.on("ignore-errors"):
            raise context.client.broken(error) from None


COMMAND = Command(
    "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]",
    "Print the logs for a container in a pod",
    run,
    flags=(
        Flag("all-containers", "bool", help="All containers of the pods."),
        Flag("all-pods", "bool", help="All pods of a workload, with --prefix."),
        Flag("container", short="c", help="Name of the container."),
        Flag("follow", "bool", short="f", help="Go on as lines are written."),
        Flag("ignore-errors", "bool", help="Go on after errors."),
        Flag("insecure-skip-tls-verify-backend", "bool", help="Do not verify the kubelet's certificate."),
        Flag("limit-bytes", "int", help="Most bytes to print."),
        Flag("max-log-requests", "int", 5, "Most logs to follow at a time with a selector."),
        Flag("pod-running-timeout", "duration", 20.0, "How long to wait until a pod runs."),
        Flag("prefix", "bool", help="Put the pod and container before each line."),
        Flag("previous", "bool", short="p", help="Of the container's previous run."),
        Flag("regex", help="Pods whose name matches."),
        Flag("selector", short="l", help="Select pods by label."),
        Flag("since", "duration", help="Only lines younger than this."),
        Flag("since-time", help="Only lines after this time (RFC 3339)."),
        Flag("tail", "int", -1, "Lines from the end; -1 means all, 10 with a selector."),
        Flag("timestamps", "bool", help="Put the time before each line."),
    ),
)
