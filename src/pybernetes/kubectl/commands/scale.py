"""`kubectl scale`: sets the number of replicas through the scale subresource."""

from __future__ import annotations

import time

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, StatusError, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`scale`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    replicas = flags.number("replicas")
    if not flags.changed("replicas"):
        raise CLIError('required flag(s) "replicas" not set')
    if replicas < 0:
        raise CLIError("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
    current = flags.number("current-replicas")
    if current < -1:
        raise CLIError("The --current-replicas must specify an integer of -1 or greater")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.selectors(flags.text("selector"), "", flags.on("all"))
    builder.arguments(arguments, allow_empty=flags.on("all"))
    infos = builder.infos()
    if flags.get("resource-version") and len(infos) > 1:
        raise CLIError("cannot use --resource-version with multiple resources")
    if not infos:
        raise_all(builder.errors)
        raise CLIError("no objects passed to scale")
    for info in infos:
        if dry != "client":
            _scale(context, info, replicas, current, dry)
        if info.mapping.group in ("apps", ""):
            info.object.setdefault("spec", {})["replicas"] = replicas
        if flags.on("record") and dry == "none":
            annotation = {mutating.CHANGE_CAUSE: mutating.change_cause(context)}
            context.client.patch(info.path(), "merge", {"metadata": {"annotations": annotation}})
        context.out(mutating.printer_for(flags, "scaled", dry)(info.object))
    raise_all(builder.errors)
    return None


def _scale(context: Context, info: Info, replicas: int, current: int, dry: str) -> None:
    flags = context.flags
    parameters = {"dryRun": "All"} if dry == "server" else {}
    wanted_version = flags.text("resource-version")
    if current == -1 and not wanted_version:
        context.client.patch(info.path("scale"), "merge", {"spec": {"replicas": replicas}}, parameters)
    else:
        scale = context.client.get(info.path("scale"))
        if current != -1 and scale["spec"].get("replicas", 0) != current:
            raise CLIError(f"Expected replicas to be {current}, was {scale['spec'].get('replicas', 0)}")
        if wanted_version and scale["metadata"]["resourceVersion"] != wanted_version:
            raise CLIError(
                f"Expected resource version to be {wanted_version}, was {scale['metadata']['resourceVersion']}"
            )
        scale["spec"]["replicas"] = replicas
        context.client.put(info.path("scale"), scale, parameters)
    if flags["timeout"] and dry == "none":
        _wait(context, info, replicas, flags["timeout"])


def _wait(context: Context, info: Info, replicas: int, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            scale = context.client.get(info.path("scale"))
        except StatusError:
            return
        if (scale.get("status") or {}).get("replicas", 0) == replicas == scale["spec"].get("replicas", 0):
            return
        time.sleep(0.1)
    raise CLIError(f'timed out waiting for "{info.name}" to be synced')


COMMAND = Command(
    "scale [--resource-version=version] [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME)",
    "Set a new size for a deployment, replica set, or replication controller",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.SELECTOR,
        mutating.ALL,
        mutating.RECORD,
        Flag("replicas", "int", help="The new number."),
        Flag("current-replicas", "int", -1, "Only if this is the number now."),
        Flag("resource-version", help="Only if this is the version now."),
        Flag("timeout", "duration", help="How long to wait until the number is reached; 0 does not wait."),
    ),
)
