"""`kubectl annotate`."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.label import flags_for, run_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`annotate`."""
    return run_for(context, arguments, "annotate")


COMMAND = Command(
    "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
    "Update the annotations on a resource",
    run,
    flags=flags_for("annotate"),
)
