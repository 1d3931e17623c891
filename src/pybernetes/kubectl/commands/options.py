"""`kubectl options`: the flags that every command has."""

from __future__ import annotations

from pybernetes.kubectl.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`options`."""
    from pybernetes.kubectl.main import GLOBAL_FLAGS
    from pybernetes.kubectl.usage import flag_lines

    context.out("The following options can be passed to any command:\n\n")
    for flag in GLOBAL_FLAGS:
        context.out("\n".join(flag_lines(flag)) + "\n\n")
    return None


COMMAND = Command("options", "Print the list of flags inherited by all commands", run)
