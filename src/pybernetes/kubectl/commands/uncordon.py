"""`kubectl uncordon`."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.drain import cordon, nodes
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`uncordon`."""
    dry = mutating.dry_run(context.flags)
    for info in nodes(context, arguments):
        cordon(context, info, False, dry)
    return None


COMMAND = Command(
    "uncordon NODE",
    "Mark node as schedulable",
    run,
    flags=(mutating.DRY_RUN, mutating.SELECTOR, Flag("output", hidden=True)),
)
