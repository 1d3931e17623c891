"""Generators of `kubectl create`: workloads, configuration and policies."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.generating import generator, one_name, require
from pybernetes.kubectl.key_values import file_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def deployment(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create deployment`."""
    flags = context.flags
    require(context, "image")
    name = one_name(context, arguments)
    command = arguments[flags.dash :] if flags.dash >= 0 else arguments[1:]
    images = flags.words("image")
    if len(images) > 1 and command:
        raise CLIError("cannot specify multiple --image options and command")
    containers: list[dict[str, Any]] = []
    for image in images:
        containers.append({"image": image, "name": image_name(image), "resources": {}})
    if command:
        containers[0]["command"] = command
    port = flags.number("port")
    if port >= 0:
        containers[0]["ports"] = [{"containerPort": port}]
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "replicas": flags.number("replicas"),
            "selector": {"matchLabels": dict(labels)},
            "strategy": {},
            "template": {"metadata": {"labels": dict(labels)}, "spec": {"containers": containers}},
        },
        "status": {},
    }


def image_name(image: str) -> str:
    """A container's name made of its image."""
    base = image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    return "".join(char if char.isalnum() or char == "-" else "-" for char in base.lower())


def job(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create job`, also from a CronJob."""
    flags = context.flags
    name = one_name(context, arguments)
    command = arguments[flags.dash :] if flags.dash >= 0 else arguments[1:]
    image, source = flags.text("image"), flags.text("from")
    if bool(image) == bool(source):
        raise CLIError("either --image or --from must be specified")
    if source and command:
        raise CLIError("cannot specify --from and command")
    if source:
        return _job_from(context, name, source)
    container: dict[str, Any] = {"image": image, "name": name, "resources": {}}
    if command:
        container["command"] = command
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [container], "restartPolicy": "Never"}}},
        "status": {},
    }


def _job_from(context: Context, name: str, source: str) -> dict[str, Any]:
    from pybernetes.kubectl.builder import Builder

    builder = Builder(context).arguments([source])
    infos = builder.checked()
    if len(infos) != 1:
        raise CLIError("from must be an existing cronjob")
    cron = infos[0].object
    if cron.get("kind") != "CronJob":
        raise CLIError("from must be an existing cronjob")
    template = cron["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    owner = {
        "apiVersion": "batch/v1",
        "controller": True,
        "kind": "CronJob",
        "name": cron["metadata"]["name"],
        "uid": cron["metadata"]["uid"],
    }
    spec = dict(template["spec"])
    spec.setdefault("template", {}).setdefault("metadata", {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual", **(metadata.get("annotations") or {})},
            **({"labels": metadata["labels"]} if metadata.get("labels") else {}),
            "ownerReferences": [owner],
        },
        "spec": spec,
        "status": {},
    }


def cronjob(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create cronjob`."""
    flags = context.flags
    require(context, "image", "schedule")
    name = one_name(context, arguments)
    command = arguments[flags.dash :] if flags.dash >= 0 else arguments[1:]
    restart = flags.text("restart") or "OnFailure"
    container: dict[str, Any] = {"image": flags.text("image"), "name": name, "resources": {}}
    if command:
        container["command"] = command
    pod = {"metadata": {}, "spec": {"containers": [container], "restartPolicy": restart}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "jobTemplate": {"metadata": {"name": name}, "spec": {"template": pod}},
            "schedule": flags.text("schedule"),
        },
        "status": {},
    }


def configmap(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create configmap`."""
    name = one_name(context, arguments)
    text, binary = file_data(context.flags, name)
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    if text:
        obj["data"] = text
    if binary:
        obj["binaryData"] = binary
    if context.flags.on("append-hash"):
        from pybernetes.kubectl.key_values import append_hash

        append_hash(obj)
    return obj


def namespace(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create namespace`."""
    name = one_name(context, arguments)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}, "status": {}}


def serviceaccount(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create serviceaccount`."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": one_name(context, arguments)}}


def quota(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create quota`."""
    flags = context.flags
    name = one_name(context, arguments)
    spec: dict[str, Any] = {}
    hard = parse_resources(flags.text("hard"))
    if hard:
        spec["hard"] = hard
    scopes = [scope.strip() for scope in flags.text("scopes").split(",") if scope.strip()]
    if scopes:
        spec["scopes"] = scopes
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec, "status": {}}


def parse_resources(text: str) -> dict[str, str]:
    """`cpu=1,memory=2Gi`. Raises CLIError."""
    from pybernetes.api.quantity import canonicalize

    found = {}
    for part in filter(None, text.split(",")):
        words = part.split("=")
        if len(words) != 2:
            raise CLIError(f"Invalid argument syntax {part}, expected <resource>=<value>")
        try:
            found[words[0]] = canonicalize(words[1])
        except ValueError as error:
            raise CLIError(str(error)) from None
    return found


def poddisruptionbudget(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create poddisruptionbudget`."""
    flags = context.flags
    name = one_name(context, arguments)
    if not flags.get("selector"):
        raise CLIError("a selector must be specified")
    low, high = flags.text("min-available"), flags.text("max-unavailable")
    if not low and not high:
        raise CLIError("one of min-available or max-unavailable must be specified")
    if low and high:
        raise CLIError("min-available and max-unavailable cannot be both specified")
    labels = dict(part.split("=", 1) for part in flags.text("selector").replace("==", "=").split(",") if "=" in part)
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}}
    spec["minAvailable" if low else "maxUnavailable"] = int_or_string(low or high)
    status = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }


def int_or_string(text: str) -> int | str:
    """A number where the text is one."""
    return int(text) if text.lstrip("-").isdigit() else text


def priorityclass(context: Context, arguments: list[str]) -> dict[str, Any]:
    """`create priorityclass`."""
    flags = context.flags
    name = one_name(context, arguments)
    obj: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "preemptionPolicy": flags.text("preemption-policy"),
        "value": flags.number("value"),
    }
    if flags.get("description"):
        obj["description"] = flags.text("description")
    if flags.on("global-default"):
        obj["globalDefault"] = True
    return obj


IMAGE = Flag("image", help="Image of the container.")
COMMANDS = (
    generator(
        "deployment NAME --image=image -- [COMMAND] [args...]",
        "Create a deployment with the specified name",
        deployment,
        (
            Flag("image", "list", help="Images of the containers."),
            Flag("port", "int", -1, "Port of the first container."),
            Flag("replicas", "int", 1, "Number of pods.", short="r"),
        ),
        aliases=("deploy",),
    ),
    generator(
        "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...]",
        "Create a job with the specified name",
        job,
        (IMAGE, Flag("from", help="CronJob to take the template of.")),
    ),
    generator(
        "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...] [flags]",
        "Create a cron job with the specified name",
        cronjob,
        (IMAGE, Flag("schedule", help="When to run, in the cron format."), Flag("restart", help="OnFailure or Never.")),
        aliases=("cj",),
    ),
    generator(
        "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none]",
        "Create a config map from a local file, directory or literal value",
        configmap,
        (
            Flag("from-file", "list", help="File or folder with values."),
            Flag("from-literal", "array", help="key=value."),
            Flag("from-env-file", "list", help="File with lines of key=value."),
            Flag("append-hash", "bool", help="Add a hash of the content to the name."),
        ),
        aliases=("cm",),
    ),
    generator(
        "namespace NAME [--dry-run=server|client|none]",
        "Create a namespace with the specified name",
        namespace,
        aliases=("ns",),
    ),
    generator(
        "serviceaccount NAME [--dry-run=server|client|none]",
        "Create a service account with the specified name",
        serviceaccount,
        aliases=("sa",),
    ),
    generator(
        "quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2] [--dry-run=server|client|none]",
        "Create a quota with the specified name",
        quota,
        (Flag("hard", help="resource=quantity pairs with commas between them."), Flag("scopes", help="Scopes.")),
        aliases=("resourcequota",),
    ),
    generator(
        "poddisruptionbudget NAME --selector=SELECTOR --min-available=N [--dry-run=server|client|none]",
        "Create a pod disruption budget with the specified name",
        poddisruptionbudget,
        (
            Flag("selector", help="Labels of the pods."),
            Flag("min-available", help="Number or percentage of pods that must be available."),
            Flag("max-unavailable", help="Number or percentage of pods that may be unavailable."),
        ),
        aliases=("pdb",),
    ),
    generator(
        "priorityclass NAME --value=VALUE --global-default=BOOL [--dry-run=server|client|none]",
        "Create a priority class with the specified name",
        priorityclass,
        (
            Flag("value", "int", help="The priority."),
            Flag("global-default", "bool", help="For pods without a class."),
            Flag("description", help="What it is for."),
            Flag("preemption-policy", default="PreemptLowerPriority", help="Never or PreemptLowerPriority."),
        ),
        aliases=("pc",),
    ),
)
