"""`kubectl set resources`."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.create_generators import parse_resources
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.setting import FLAGS, change, containers_of, infos

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`set resources`."""
    flags = context.flags
    if flags.on("all") and flags.get("selector"):
        raise CLIError("cannot set --all and --selector at the same time")
    if not flags.text("limits") and not flags.text("requests"):
        raise CLIError("you must specify an update to requests or limits (in the form of --requests/--limits)")
    limits, requests = parse_resources(flags.text("limits")), parse_resources(flags.text("requests"))
    found, errors = infos(context, arguments)

    def mutate(obj: dict[str, Any]) -> None:
        chosen = containers_of(obj, flags.text("containers"))
        if not chosen:
            raise CLIError(f"error: unable to find container named {flags.text('containers')}")
        for container in chosen:
            resources = container.setdefault("resources", {})
            for name, values in (("limits", limits), ("requests", requests)):
                if values:
                    resources[name] = {**(resources.get(name) or {}), **values}

    return change(context, found, errors, mutate, "resource requirements updated")


COMMAND = Command(
    "resources (-f FILENAME | TYPE NAME)  ([--limits=LIMITS & --requests=REQUESTS]",
    "Update resource requests/limits on objects with pod templates",
    run,
    flags=(
        *FLAGS,
        mutating.SELECTOR,
        Flag("containers", default="*", short="c", help="Names of containers, with * as a wildcard."),
        Flag("limits", help="cpu=100m,memory=256Mi"),
        Flag("requests", help="cpu=100m,memory=256Mi"),
    ),
)
