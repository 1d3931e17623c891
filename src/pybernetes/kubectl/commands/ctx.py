"""`kubectl ctx`: lists the contexts, or switches to one."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.config import use_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`ctx [NAME]`."""
    if arguments:
        return use_context(context, arguments)
    config = context.loader.config
    for name in sorted(config.contexts):
        context.out(f"{'*' if name == config.current_context else ' '} {name}\n")
    return None


COMMAND = Command("ctx [NAME]", "List contexts, or switch to one", run)
