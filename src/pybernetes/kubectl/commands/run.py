"""`kubectl run`: a pod of an image; with the flags that kubectl dropped, a Deployment, a Job or a CronJob.

`--replicas`, `--generator`, `--schedule` and `--restart-policy` choose what kubectl 1.17 and older made of `run`.
Without them the command is v1.36's.
"""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import copy, loads
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.generating import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_RESTARTS = ("Always", "OnFailure", "Never")
_GENERATORS = {
    "deployment/apps.v1": "Deployment",
    "deployment/apps.v1beta1": "Deployment",
    "deployment/v1beta1": "Deployment",
    "run-pod/v1": "Pod",
    "job/v1": "Job",
    "cronjob/v1beta1": "CronJob",
    "cronjob/v2alpha1": "CronJob",
    "run/v1": "ReplicationController",
}
_SERVED = {"deployment/apps.v1", "run-pod/v1", "job/v1", "run/v1"}
"""Generators whose API version is still served; the others make the same object in today's version."""


def run(context: Context, arguments: list[str]) -> int | None:
    """`run`."""
    flags = context.flags
    before = arguments[: flags.dash] if flags.dash >= 0 else arguments
    usage = f"\nSee '{context.path} -h' for help and examples"
    if not flags.changed("image"):
        raise CLIError('required flag(s) "image" not set')
    if not before:
        raise CLIError(f"NAME is required for run{usage}")
    name = before[0]
    command = arguments[1:]
    image = flags.text("image")
    if not image:
        raise CLIError("--image is required")
    if not valid_image(image):
        raise CLIError(f'Invalid image name "{image}": invalid reference format')
    if flags.on("tty") and not flags.on("stdin"):
        raise CLIError(f"-i/--stdin is required for containers with -t/--tty=true{usage}")
    if flags.on("expose") and not flags.text("port"):
        raise CLIError(f"--port must be set when exposing a service{usage}")
    attach = flags.on("attach") if flags.changed("attach") else flags.on("tty") or flags.on("stdin")
    if flags.on("rm") and not attach:
        raise CLIError(f"--rm should only be used for attached containers{usage}")
    if attach and mutating.dry_run(flags) != "none":
        raise CLIError(
            "--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)"
            + usage
        )
    restart = flags.text("restart-policy") or flags.text("restart") or "Always"
    if restart not in _RESTARTS:
        raise CLIError(f"invalid restart policy: {restart}{usage}")
    pull = flags.text("image-pull-policy")
    if pull and pull not in ("Always", "IfNotPresent", "Never"):
        raise CLIError(f"invalid image pull policy: {pull}{usage}")
    kind = _kind(context, restart)
    obj = _object(context, name, image, command, restart, kind)
    if flags.text("overrides"):
        obj = _override(context, obj)
    if attach:
        return _attached(context, obj, name)
    if flags.on("expose"):
        finish(context, _service(context, name, obj))
        context.out("---\n---\n" if flags.text("output") == "yaml" else "")
    finish(context, obj)
    return None


def valid_image(image: str) -> bool:
    """Whether a text can be a reference to an image."""
    import re

    part = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
    domain = (
        r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?))*(?::[0-9]+)?"
    )
    pattern = rf"(?:{domain}/)?{part}(?:/{part})*(?::[\w][\w.-]{{0,127}})?(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{{32,}})?"
    return re.fullmatch(pattern, image) is not None


def _kind(context: Context, restart: str) -> str:
    flags = context.flags
    generator = flags.text("generator")
    if generator:
        if generator not in _GENERATORS:
            raise CLIError(f"generator \"{generator}\" not found\nSee '{context.path} -h' for help and examples")
        kind = _GENERATORS[generator]
        if generator not in _SERVED:
            context.err(
                f"Warning: the API version of generator {generator} is not served any more; the {kind} is made in the"
                " version of today\n"
            )
        return kind
    if flags.text("schedule"):
        return "CronJob"
    if flags.changed("replicas") or flags.changed("restart-policy"):
        return {"Always": "Deployment", "OnFailure": "Job", "Never": "Pod"}[restart]
    if restart == "OnFailure" and flags.changed("restart"):
        return "Job"
    return "Pod"


def _object(context: Context, name: str, image: str, command: list[str], restart: str, kind: str) -> dict[str, Any]:
    flags = context.flags
    labels = _labels(flags.text("labels")) if flags.text("labels") else {"run": name}
    container: dict[str, Any] = {"name": name, "image": image}
    if command:
        container["command" if flags.on("command") else "args"] = command
    if flags.text("port"):
        try:
            container["ports"] = [{"containerPort": int(flags.text("port"))}]
        except ValueError:
            raise CLIError(f'strconv.Atoi: parsing "{flags.text("port")}": invalid syntax') from None
    if flags.words("env"):
        container["env"] = [_variable(each) for each in flags.words("env")]
    container["resources"] = {}
    if flags.text("image-pull-policy"):
        container["imagePullPolicy"] = flags.text("image-pull-policy")
    if flags.on("privileged"):
        container["securityContext"] = {"privileged": True}
    if flags.on("stdin"):
        container["stdin"] = True
        if not flags.on("leave-stdin-open"):
            container["stdinOnce"] = True
    if flags.on("tty"):
        container["tty"] = True
    annotations = _labels(",".join(flags.words("annotations"))) if flags.words("annotations") else {}
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    spec: dict[str, Any] = {"containers": [container]}
    if kind == "Pod":
        spec["restartPolicy"] = restart
        spec["dnsPolicy"] = "ClusterFirst"
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}
    template: dict[str, Any] = {"metadata": {"labels": dict(labels)}, "spec": spec}
    replicas = flags.number("replicas") if flags.changed("replicas") else 1
    if kind == "Deployment":
        outer: dict[str, Any] = {"replicas": replicas, "selector": {"matchLabels": dict(labels)}, "template": template}
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": metadata,
            "spec": {**outer, "strategy": {}},
            "status": {},
        }
    if kind == "ReplicationController":
        outer = {"replicas": replicas, "selector": dict(labels), "template": template}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": outer, "status": {}}
    spec["restartPolicy"] = restart if restart != "Always" else "OnFailure"
    job = {"template": template}
    if kind == "Job":
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": job, "status": {}}
    outer = {
        "schedule": flags.text("schedule"),
        "concurrencyPolicy": "Allow",
        "jobTemplate": {"metadata": {}, "spec": job},
    }
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": outer, "status": {}}


def _labels(text: str) -> dict[str, str]:
    found = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not equals:
            raise CLIError(f"unexpected label spec: {pair}")
        found[key] = value
    return found


def _variable(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CLIError(f"invalid env: {text}")
    return {"name": name, "value": value}


def _override(context: Context, obj: dict[str, Any]) -> dict[str, Any]:
    from pybernetes.kubectl.commands.patch import apply_locally

    kind = context.flags.text("override-type")
    if kind not in ("json", "merge", "strategic"):
        raise CLIError(f"invalid override type: {kind}")
    try:
        patch = loads(context.flags.text("overrides"))
    except ValueError as error:
        raise CLIError(f"Invalid JSON Patch: {error}" if kind == "json" else "Invalid JSON Patch") from None
    return apply_locally(obj, patch, kind)


def _service(context: Context, name: str, obj: dict[str, Any]) -> dict[str, Any]:
    labels = (obj["metadata"].get("labels")) or {}
    port = int(context.flags.text("port"))
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **({"labels": copy(labels)} if context.flags.text("labels") else {})},
        "spec": {"ports": [{"port": port, "protocol": "TCP", "targetPort": port}], "selector": copy(labels)},
        "status": {"loadBalancer": {}},
    }


def _attached(context: Context, obj: dict[str, Any], name: str) -> int | None:
    """Creates the pod, attaches to it, and with --rm deletes it afterwards."""
    from pybernetes.kubectl.attaching import attach_to_new

    mapping = context.mapper.kind(obj["apiVersion"], obj["kind"])
    obj["metadata"]["namespace"] = context.namespace()
    created = context.client.post(mapping.path(context.namespace()), obj, mutating.parameters(context.flags))
    try:
        return int(attach_to_new(context, created))
    finally:
        if context.flags.on("rm"):
            context.client.delete(mapping.path(context.namespace(), name), {"propagationPolicy": "Background"})
            where = f" from {context.namespace()} namespace"
            context.out(f'{mapping.kind.lower()} "{name}" deleted{where}\n')


COMMAND = Command(
    'run NAME --image=image [--env="key=value"] [--port=port] [--dry-run=server|client] [--overrides=inline-json]'
    " [--command] -- [COMMAND] [args...]",
    "Run a particular image on the cluster",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.SAVE_CONFIG,
        mutating.RECORD,
        mutating.field_manager("kubectl-run"),
        Flag("annotations", "array", help="key=value; may be repeated."),
        Flag("attach", "bool", help="Attach to the container when it runs."),
        Flag("cascade", default="background", no_value="background", help="background, foreground or orphan."),
        Flag("command", "bool", help="The arguments are the command, not its arguments."),
        Flag("detach-keys", default="ctrl-p,ctrl-q", help="Keys that end an attached session."),
        Flag("env", "array", help="NAME=VALUE; may be repeated."),
        Flag("expose", "bool", help="Make a Service too."),
        Flag("force", "bool", help="Delete at once."),
        Flag("generator", help="What to make, by the name of an old generator."),
        Flag("grace-period", "int", -1, "Seconds that the pod gets to end."),
        Flag("image", help="Image of the container."),
        Flag("image-pull-policy", help="Always, IfNotPresent or Never."),
        Flag("labels", short="l", help="key=value pairs with commas between them."),
        Flag("leave-stdin-open", "bool", help="Keep stdin open after the first attach."),
        Flag("override-type", default="merge", help="json, merge or strategic."),
        Flag("overrides", help="Patch of the generated object."),
        Flag("pod-running-timeout", "duration", 60.0, "How long to wait until the pod runs."),
        Flag("port", help="Port of the container."),
        Flag("privileged", "bool", help="Run privileged."),
        Flag("quiet", "bool", short="q", help="Less messages."),
        Flag("replicas", "int", 1, "Number of pods of a Deployment.", short="r"),
        Flag("restart", default="Always", help="Always, OnFailure or Never."),
        Flag("restart-policy", help="The same as --restart, with a Deployment for Always."),
        Flag("rm", "bool", help="Delete the pod when the session ends."),
        Flag("schedule", help="Make a CronJob with this schedule."),
        Flag("stdin", "bool", short="i", help="Keep stdin open."),
        Flag("timeout", "duration", help="How long to wait for a deletion."),
        Flag("tty", "bool", short="t", help="A terminal for the container."),
        Flag("wait", "bool", help="Wait until the pod is gone."),
    ),
)
