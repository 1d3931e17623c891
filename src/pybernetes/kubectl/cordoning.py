"""Nodes that are cordoned or uncordoned: what `cordon`, `uncordon` and `drain` share."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def nodes(context: Context, arguments: list[str]) -> list[Info]:
    """The nodes that the arguments or the selector name. Raises CLIError."""
    flags = context.flags
    usage = f"\nSee '{context.path} -h' for help and examples"
    if not arguments and not flags.changed("selector"):
        use = {"drain": "drain NODE", "cordon": "cordon NODE", "uncordon": "uncordon NODE"}[context.path.split()[-1]]
        raise CLIError(f"USAGE: {use} [flags]{usage}")
    if arguments and flags.text("selector"):
        raise CLIError(f"error: cannot specify both a node name and a --selector option{usage}")
    words = [word.partition("/")[2] if word.startswith(("node/", "nodes/", "no/")) else word for word in arguments]
    builder = Builder(context).selectors(flags.text("selector"))
    builder.chunk = int(flags.get("chunk-size", 500))
    if words or flags.text("selector"):
        builder.arguments(["nodes", *words])
    found = builder.infos()
    raise_all(builder.errors)
    return found


def cordon(context: Context, info: Info, wanted: bool, dry: str) -> None:
    """Makes a node unschedulable or schedulable and prints it."""
    flags = context.flags
    word = "cordoned" if wanted else "uncordoned"
    if bool(dig(info.object, "spec", "unschedulable", default=False)) == wanted:
        context.out(mutating.printer_for(flags, f"already {word}", dry)(info.object))
        return
    if dry != "client":
        parameters = {"dryRun": "All"} if dry == "server" else {}
        body = {"spec": {"unschedulable": True if wanted else None}}
        info.refresh(context.client.patch(info.path(), "strategic", body, parameters))
    context.out(mutating.printer_for(flags, word, dry)(info.object))


def command(name: str, short: str, wanted: bool) -> Command:
    """The command that makes nodes unschedulable (`wanted`) or schedulable."""

    def run(context: Context, arguments: list[str]) -> int | None:
        dry = mutating.dry_run(context.flags)
        for info in nodes(context, arguments):
            cordon(context, info, wanted, dry)
        return None

    flags = (mutating.DRY_RUN, mutating.SELECTOR, Flag("output", hidden=True))
    return Command(f"{name} NODE", short, run, flags=flags)
