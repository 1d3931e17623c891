"""`kubectl debug`: a container to look into a pod or a node with.

Three ways: an ephemeral container in the running pod; a copy of the pod with a container added or changed
(`--copy-to`); a pod on a node that sees the node's files and processes. The rights come from `--profile`
(`debug_profiles.py`).
"""

from __future__ import annotations

from pybernetes.kubectl import debug_profiles
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.run import valid_image
from pybernetes.kubectl.data import copy
from pybernetes.kubectl.errors import CLIError, StatusError
from pybernetes.kubectl.flags import Flag, FlagError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_NOT_ROOT = (
    "Warning: Non-root user is configured for the entire target Pod, and some capabilities granted by debug profile may"
    ' not work. Please consider using "--custom" with a custom profile that specifies "securityContext.runAsUser: 0".\n'
)


def run(context: Context, arguments: list[str]) -> int | None:
    """`debug`."""
    flags = context.flags
    names, command = arguments, []
    if 0 <= flags.dash < len(arguments):
        names, command = arguments[: flags.dash], arguments[flags.dash :]
    images = _pairs(context, "set-image")
    _pairs(context, "env")
    debug_profiles.profile(flags.text("profile"))
    custom = _custom(flags.text("custom"))
    _check(context, names, command, images, custom)
    builder = Builder(context).files(flags.words("filename"))
    if names:
        builder.arguments([each if "/" in each else f"pods/{each}" for each in names])
    for info in builder.checked():
        pod, container = _start(context, info, command, images, custom)
        attach = flags.on("attach") if flags.changed("attach") else flags.on("stdin")
        if attach and container:
            from pybernetes.kubectl.attaching import attach_to_container

            attach_to_container(context, pod["metadata"]["namespace"], pod["metadata"]["name"], container)
    return None


def _pairs(context: Context, flag: str) -> dict[str, str]:
    """The key=value pairs of a flag."""
    found = {}
    for word in context.flags.words(flag):
        key, equals, value = word.partition("=")
        if not equals:
            error = FlagError(f'invalid argument "{word}" for "--{flag}" flag: {word} must be formatted as key=value')
            raise CLIError(f"{error.message}\nSee '{context.path} --help' for usage.")
        found[key] = value
    return found


def _custom(path: str) -> dict[str, Any] | None:
    """The partial container of `--custom`. Raises CLIError."""
    if not path:
        return None
    from pybernetes.kubectl.manifests import parse_yaml

    try:
        with open(path, "rb") as file:
            found = parse_yaml(file.read())
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise CLIError(f"must pass a container spec json file for custom profile: open {path}: {reason}") from None
    except ValueError as error:
        raise CLIError(f"{path} does not contain a valid container spec: {error}") from None
    if not isinstance(found, dict):
        raise CLIError(f"{path} does not contain a valid container spec: it holds no object")
    return found


def _check(
    context: Context, names: list[str], command: list[str], images: dict[str, str], custom: dict[str, Any] | None
) -> None:
    """Refuses what can only fail, before any request. Raises CLIError."""
    flags = context.flags
    image, target = flags.text("image"), flags.text("target")
    copies = bool(flags.text("copy-to"))
    named = bool(flags.text("container"))
    pull = flags.text("image-pull-policy")
    refused = (
        (
            flags.changed("attach") and flags.on("attach") and not image and not named,
            "you must specify --container or create a new container using --image in order to attach.",
        ),
        (
            copies and not image and not images and not command,
            "you must specify --image, --set-image or command arguments.",
        ),
        (
            copies and command and not named and not image,
            "you must specify an existing container or a new image when specifying args.",
        ),
        (not copies and flags.on("replace"), "--replace may only be used with --copy-to."),
        (not copies and flags.on("same-node"), "--same-node may only be used with --copy-to."),
        (not copies and images, "--set-image may only be used with --copy-to."),
        (not copies and not image, "you must specify --image when not using --copy-to."),
        (image and not valid_image(image), f'invalid image name "{image}": invalid reference format'),
        (not names and not flags.words("filename"), "NAME or filename is required for debug"),
        (pull not in ("", "Always", "IfNotPresent", "Never"), f"invalid image pull policy: {pull}"),
        *(
            (not valid_image(each), f'invalid image name "{each}" for container "{key}": invalid reference format')
            for key, each in images.items()
        ),
        (target and copies, "--target is incompatible with --copy-to. Use --share-processes instead."),
    )
    for wrong, message in refused:
        if wrong:
            raise CLIError(message)
    if target and not flags.on("quiet"):
        context.out(
            f'Targeting container "{target}". If you don\'t see processes from this container it may be because the'
            " container runtime doesn't support this feature.\n"
        )
    if flags.on("tty") and not flags.on("stdin"):
        raise CLIError("-i/--stdin is required for containers with -t/--tty=true")
    if custom and any(custom.get(key) for key in ("name", "command", "image", "lifecycle", "volumeDevices")):
        raise CLIError("name, command, image, lifecycle and volume devices are not modifiable via custom profile")
    if flags.text("profile") == "legacy":
        context.err(
            "--profile=legacy is deprecated and planned to be removed in v1.39. It is recommended to specify other"
            ' profile, for example "--profile=general".\n'
        )


def _start(
    context: Context, info: Info, command: list[str], images: dict[str, str], custom: dict[str, Any] | None
) -> tuple[dict[str, Any], str]:
    """Makes the debugging container; returns its pod and its name (empty where only images were changed)."""
    kind = info.mapping.kind
    if kind == "Node" and not info.mapping.group:
        return _on_node(context, info.object, command, custom)
    if kind != "Pod" or info.mapping.group:
        group = info.mapping.group
        raise CLIError(f'"{group}/{info.mapping.version}, Kind={kind}" not supported by debug')
    if context.flags.text("copy-to"):
        return _by_copy(context, info, command, images, custom)
    return _ephemeral(context, info, command, custom)


def _container(context: Context, name: str, command: list[str]) -> dict[str, Any]:
    flags = context.flags
    found: dict[str, Any] = {"name": name, "image": flags.text("image"), "terminationMessagePolicy": "File"}
    _fill(context, found, command)
    return found


def _fill(context: Context, container: dict[str, Any], command: list[str]) -> None:
    """Writes what the flags say into a container."""
    flags = context.flags
    if command and flags.on("arguments-only"):
        container["args"] = command
    elif command:
        container["command"] = command
        container.pop("args", None)
    env = _pairs(context, "env")
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in env.items()]
    if flags.text("image"):
        container["image"] = flags.text("image")
    if flags.text("image-pull-policy"):
        container["imagePullPolicy"] = flags.text("image-pull-policy")
    for key in ("stdin", "tty"):
        container.pop(key, None)
        if flags.on(key):
            container[key] = True


def _customized(container: dict[str, Any], custom: dict[str, Any] | None) -> None:
    if custom is None:
        return
    from pybernetes.kubectl.strategic import merge, type_of

    spec = {"spec": {"containers": [container]}}
    patch = {"spec": {"containers": [{**custom, "name": container["name"]}]}}
    merged = merge(spec, patch, type_of("v1", "Pod"))["spec"]["containers"][0]
    container.clear()
    container.update(merged)


def _new_name(context: Context, pod: dict[str, Any]) -> str:
    """The name of `--container`, or a name that no container of the pod has."""
    flags = context.flags
    if flags.text("container"):
        return flags.text("container")
    taken = {each["name"] for each in _every(pod)}
    name = f"debugger-{_suffix()}"
    while name in taken:
        name = f"debugger-{_suffix()}"
    if not flags.on("quiet"):
        context.out(f"Defaulting debug container name to {name}.\n")
    return name


def _every(pod: dict[str, Any]) -> list[dict[str, Any]]:
    spec = pod["spec"]
    return [each for key in ("containers", "initContainers", "ephemeralContainers") for each in spec.get(key) or ()]


def _suffix() -> str:
    """Five letters as the API server's generated names have them."""
    import os

    return "".join("bcdfghjklmnpqrstvwxz2456789"[byte % 27] for byte in os.urandom(5))


def _ephemeral(
    context: Context, info: Info, command: list[str], custom: dict[str, Any] | None
) -> tuple[dict[str, Any], str]:
    flags = context.flags
    container = _container(context, _new_name(context, info.object), command)
    if flags.text("target"):
        container["targetContainerName"] = flags.text("target")
    debug_profiles.apply(flags, info.object, container, debug_profiles.EPHEMERAL)
    _customized(container, custom)
    if debug_profiles.warns_of_user(info.object, container):
        context.err(_NOT_ROOT)
    existing = [each["name"] for each in info.object["spec"].get("ephemeralContainers") or ()]
    order = [{"name": each} for each in dict.fromkeys([*existing, container["name"]])]
    patch = {"spec": {"$setElementOrder/ephemeralContainers": order, "ephemeralContainers": [container]}}
    try:
        pod = context.client.patch(info.path("ephemeralcontainers"), "strategic", patch)
    except StatusError as error:
        if error.reason == "NotFound" and not error.details.get("name"):
            raise CLIError(
                f'ephemeral containers are disabled for this cluster (error from server: "{error.message}")'
            ) from None
        raise
    return pod, container["name"]


def _on_node(
    context: Context, node: dict[str, Any], command: list[str], custom: dict[str, Any] | None
) -> tuple[dict[str, Any], str]:
    flags = context.flags
    node_name = node["metadata"]["name"]
    name = f"node-debugger-{node_name}-{_suffix()}"
    container = _container(context, flags.text("container") or "debugger", command)
    if not flags.on("quiet"):
        context.out(f"Creating debugging pod {name} with container {container['name']} on node {node_name}.\n")
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "kubectl-debug"}},
        "spec": {
            "containers": [container],
            "nodeName": node_name,
            "restartPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
        },
    }
    debug_profiles.apply(flags, pod, container, debug_profiles.NODE)
    _customized(container, custom)
    return context.client.post(f"/api/v1/namespaces/{context.namespace()}/pods", pod), container["name"]


def _by_copy(
    context: Context, info: Info, command: list[str], images: dict[str, str], custom: dict[str, Any] | None
) -> tuple[dict[str, Any], str]:
    flags = context.flags
    original = info.object["metadata"]
    metadata = {key: copy(original[key]) for key in ("annotations", "labels") if key in original}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": flags.text("copy-to"), "namespace": info.namespace, **metadata},
        "spec": copy(info.object["spec"]),
    }
    spec = pod["spec"]
    spec.pop("ephemeralContainers", None)
    if flags.changed("share-processes"):
        spec["shareProcessNamespace"] = flags.on("share-processes")
    if not flags.on("same-node"):
        spec.pop("nodeName", None)
    for each in spec["containers"]:
        each["image"] = images.get(each["name"]) or images.get("*") or each["image"]
    wanted = flags.text("container")
    container = next((each for each in _every(pod) if each["name"] == wanted), None)
    name = ""
    if container is None and not flags.text("image"):
        if not images:
            raise CLIError("you must specify image when creating new container")
    else:
        if container is None:
            container = {"name": _new_name(context, pod), "terminationMessagePolicy": "File"}
            spec["containers"].append(container)
        _fill(context, container, command)
        debug_profiles.apply(flags, pod, container, debug_profiles.COPY)
        _customized(container, custom)
        name = container["name"]
        if debug_profiles.warns_of_user(pod, container):
            context.err(_NOT_ROOT)
    created = context.client.post(f"/api/v1/namespaces/{info.namespace}/pods", pod)
    if flags.on("replace"):
        context.client.delete(info.path(), {"gracePeriodSeconds": 0})
    return created, name


COMMAND = Command(
    "debug (POD | TYPE[[.VERSION].GROUP]/NAME) [ -- COMMAND [args...] ]",
    "Create debugging sessions for troubleshooting workloads and nodes",
    run,
    flags=(
        Flag("arguments-only", "bool", help="What follows -- are arguments, not the command."),
        Flag("attach", "bool", help="Wait for the container and attach to it; the default with --stdin."),
        Flag("container", short="c", help="Name of the debugging container."),
        Flag("copy-to", help="Debug a copy of the pod with this name."),
        Flag("custom", help="File with a partial container spec for the debugging container."),
        Flag("env", "list", help="NAME=VALUE for the container; may be repeated."),
        Flag("filename", "list", short="f", help="Files, folders or URLs with the targets."),
        Flag("image", help="Image of the debugging container."),
        Flag("image-pull-policy", help="Always, IfNotPresent or Never."),
        Flag("keep-annotations", "bool", help="A copy keeps the annotations."),
        Flag("keep-init-containers", "bool", True, "A copy keeps the init containers."),
        Flag("keep-labels", "bool", help="A copy keeps the labels."),
        Flag("keep-liveness", "bool", help="A copy keeps liveness probes."),
        Flag("keep-readiness", "bool", help="A copy keeps readiness probes."),
        Flag("keep-startup", "bool", help="A copy keeps startup probes."),
        Flag("profile", default="general", help="legacy, general, baseline, netadmin, restricted or sysadmin."),
        Flag("quiet", "bool", short="q", help="No messages."),
        Flag("replace", "bool", help="With --copy-to: delete the original."),
        Flag("same-node", "bool", help="With --copy-to: on the node of the original."),
        Flag("set-image", "list", help="With --copy-to: CONTAINER=IMAGE pairs."),
        Flag("share-processes", "bool", True, "With --copy-to: containers see each other's processes."),
        Flag("stdin", "bool", short="i", help="Keep stdin open."),
        Flag("target", help="Container whose processes the ephemeral container sees."),
        Flag("tty", "bool", short="t", help="A terminal for the container."),
    ),
)
