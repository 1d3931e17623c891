"""Shared by the subcommands of `kubectl set`: finding objects, their pod specs, patching, messages."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.data import copy, dig
from pybernetes.kubectl.errors import CLIError, StatusError, raise_all
from pybernetes.kubectl.strategic import two_way, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pybernetes.kubectl.context import Context

FLAGS = (
    *mutating.PRINT_FLAGS,
    *mutating.FILENAME_FLAGS,
    mutating.DRY_RUN,
    mutating.ALL,
    mutating.LOCAL,
    mutating.RECORD,
    mutating.field_manager("kubectl-set"),
)


_SILENT = ("image updated", "env updated", "resource requirements updated", "subjects updated")
"""Messages that are not printed where nothing changes, even if the object is only shown."""


def infos(context: Context, resources: list[str]) -> tuple[list[Info], list[CLIError]]:
    """The objects to change, and the errors on the way."""
    flags = context.flags
    if flags.on("local") and mutating.dry_run(flags) == "server":
        raise CLIError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.get("kustomize") or "")
    builder.local = flags.on("local")
    builder.latest = not flags.on("local")
    if not flags.on("local"):
        builder.selectors(flags.get("selector") or "", "", flags.on("all"))
        builder.arguments(resources, allow_empty=flags.on("all"))
    elif resources and not flags.words("filename"):
        raise CLIError("cannot specify --local and server resources")
    return builder.infos(), builder.errors


def pod_spec(obj: dict[str, Any]) -> dict[str, Any] | None:
    """The pod spec within a workload, or None."""
    kind = obj.get("kind")
    if kind == "Pod":
        found = obj.get("spec")
    elif kind == "CronJob":
        found = dig(obj, "spec", "jobTemplate", "spec", "template", "spec")
    elif kind == "PodTemplate":
        found = dig(obj, "template", "spec")
    else:
        found = dig(obj, "spec", "template", "spec")
    return found if isinstance(found, dict) else None


def containers_of(obj: dict[str, Any], pattern: str) -> list[dict[str, Any]]:
    """The containers of an object's pod spec that a name or pattern matches. Raises CLIError."""
    spec = pod_spec(obj)
    if spec is None:
        raise CLIError(f"the object is not a pod or does not have a pod template: *v1.{obj.get('kind')}")
    return selected([*(spec.get("containers") or ()), *(spec.get("initContainers") or ())], pattern)


def selected(containers: list[dict[str, Any]], pattern: str) -> list[dict[str, Any]]:
    """The containers that a name or pattern matches."""
    from fnmatch import fnmatchcase

    return [each for each in containers if fnmatchcase(each["name"], pattern)]


def change(
    context: Context, found: list[Info], errors: list[CLIError], mutate: Callable[[dict[str, Any]], None], done: str
) -> int | None:
    """Changes each object with `mutate`, sends the difference and prints the result; nothing changed prints nothing."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    failures: list[CLIError] = list(errors)
    for info in found:
        before = copy(info.object)
        try:
            mutate(info.object)
        except CLIError as error:
            label = f"{info.mapping.kind.lower() if flags.on('local') else info.mapping.resource}/{info.name}"
            failures.append(
                error if error.message.startswith("error: unable") else CLIError(f"error: {label} {error.message}\n")
            )
            continue
        local = flags.on("local") or dry == "client"
        if local and done in _SILENT and info.object == before:
            continue
        if local:
            context.out(mutating.printer_for(flags, done, "client" if dry == "client" else "none")(info.object))
            continue
        mutating.record(context, info.object)
        cls = type_of(info.mapping.api_version, info.mapping.kind)
        patch = two_way(before, info.object, cls)
        if not patch:
            continue
        try:
            after = mutating.patch(context, info, "strategic" if cls else "merge", patch, dry)
        except StatusError as error:
            failures.append(failed(error, done))
            continue
        context.out(mutating.printer_for(flags, done, dry)(after))
    raise_all(failures)
    return None


def failed(error: StatusError, done: str) -> CLIError:
    """The words for a refused patch."""
    what = {
        "image updated": "failed to patch image update to pod template:",
        "env updated": "failed to patch env update to pod template:",
        "resource requirements updated": "failed to patch resources update to pod template",
        "serviceaccount updated": "failed to patch ServiceAccountName",
        "subjects updated": "failed to patch subjects to rolebinding:",
    }.get(done, "failed to patch:")
    return CLIError(f"{what} {error.message}")


def split_pairs(arguments: list[str], removal: bool = False) -> tuple[list[str], list[str]]:
    """Resources, and from the first `key=value` (or `key-`) on the changes."""
    at = next(
        (
            i
            for i, word in enumerate(arguments)
            if "=" in word or (removal and word.endswith("-") and (i or word == "-"))
        ),
        len(arguments),
    )
    return arguments[:at], arguments[at:]
