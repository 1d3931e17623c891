"""The one shape of a command: a name, its flags, what it says about itself, and the function that runs it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.flags import Flag

    Run: TypeAlias = Callable[[Context, list[str]], int | None]


class Command:
    """A command, or a group of them (`children`, by name: a Command, or the module that has it as COMMAND)."""

    __slots__ = (
        "aliases",
        "children",
        "deprecated",
        "examples",
        "flags",
        "help_on_stdout",
        "hidden",
        "long",
        "name",
        "run",
        "short",
        "use",
    )

    def __init__(
        self,
        use: str,
        short: str,
        run: Run | None = None,
        *,
        flags: Sequence[Flag] = (),
        long: str = "",
        examples: str = "",
        aliases: Sequence[str] = (),
        children: dict[str, Command | str] | None = None,
        hidden: bool = False,
        deprecated: str = "",
        help_on_stdout: bool = False,
    ) -> None:
        self.use = use
        self.name = use.split(" ", 1)[0]
        self.short = short
        self.run = run
        self.flags = flags
        self.long = long
        self.examples = examples
        self.aliases = aliases
        self.children = children or {}
        self.hidden = hidden
        self.deprecated = deprecated
        self.help_on_stdout = help_on_stdout
        """Of a group: whether its help goes to stdout when no subcommand is named."""

    def child(self, name: str) -> Command | None:
        """A subcommand by its name or alias."""
        found = self.children.get(name)
        if isinstance(found, str):
            return load(found)
        if found is None:
            for each in self.children.values():
                child = load(each) if isinstance(each, str) else each
                if name in child.aliases:
                    return child
        return found


def load(module: str) -> Command:
    """The COMMAND of a module of `commands`."""
    from importlib import import_module

    command: Command = import_module(f"pybernetes.kubectl.commands.{module}").COMMAND
    return command
