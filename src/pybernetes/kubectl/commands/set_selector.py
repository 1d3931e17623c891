"""`kubectl set selector`: the selector of a Service."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.setting import FLAGS, infos

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`set selector`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    if not arguments:
        raise CLIError("one selector is required")
    *resources, text = arguments
    found, errors = infos(context, resources)
    if errors:
        raise errors[0]
    if "=" not in text:
        raise CLIError("one selector is required")
    selector = dict(pair.split("=", 1) for pair in text.replace("==", "=").split(",") if "=" in pair)
    for info in found:
        if info.mapping.kind != "Service":
            raise CLIError("setting a selector is only supported for Services")
        before = dict(info.object["spec"].get("selector") or {})
        info.object["spec"]["selector"] = selector
        if flags.on("local") or dry == "client":
            context.out(mutating.printer_for(flags, "selector updated", dry)(info.object))
            continue
        gone = dict.fromkeys(key for key in before if key not in selector)
        body: dict[str, Any] = {"spec": {"selector": {**gone, **selector}}}
        if flags.text("resource-version"):
            body["metadata"] = {"resourceVersion": flags.text("resource-version")}
        after = mutating.patch(context, info, "merge", body, dry)
        context.out(mutating.printer_for(flags, "selector updated", dry)(after))
    return None


COMMAND = Command(
    "selector (-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version]",
    "Set the selector on a resource",
    run,
    flags=(
        *(flag for flag in FLAGS if flag.name not in ("kustomize", "recursive")),
        Flag("recursive", "bool", True, "Go through folders below the folder of -f.", short="R"),
        Flag("resource-version", help="Only if this is the version now."),
    ),
)
