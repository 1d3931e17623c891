"""`kubectl plugin list`, and running `kubectl-NAME` programs of the PATH as commands."""

from __future__ import annotations

import os

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run_plugin(argv: list[str]) -> None:
    """Replaces this process with the plugin of the longest name that the arguments spell; returns if there is none."""
    words = []
    for word in argv:
        if word.startswith("-"):
            break
        words.append(word.replace("-", "_"))
    for count in range(len(words), 0, -1):
        path = _which("kubectl-" + "-".join(words[:count]))
        if path:
            os.execv(path, [path, *argv[count:]])


def _which(name: str) -> str:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def list_plugins(context: Context, arguments: list[str]) -> int:
    """`plugin list`."""
    from pybernetes.kubectl.commands import COMMANDS

    found: list[str] = []
    problems: list[str] = []
    seen: dict[str, str] = {}
    folders = list(dict.fromkeys(each for each in os.environ.get("PATH", "").split(os.pathsep) if each.strip()))
    for folder in folders:
        try:
            entries = sorted(os.listdir(folder))
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                reason = f"open {folder}: {(error.strerror or '').lower()}"
                context.err(f'Unable to read directory "{folder}" from your PATH: {reason}. Skipping...\n')
            continue
        for entry in entries:
            path = os.path.join(folder, entry)
            if not entry.startswith("kubectl-") or os.path.isdir(path):
                continue
            lines = []
            if not os.access(path, os.X_OK):
                lines.append(f"warning: {path} identified as a kubectl plugin, but it is not executable")
            if entry in seen:
                lines.append(f"warning: {path} is overshadowed by a similarly named plugin: {seen[entry]}")
            else:
                seen[entry] = path
            words = entry[8:].split("-")
            if words[0] in COMMANDS and len(words) == 1:
                lines.append(f'warning: {entry} overwrites existing command: "kubectl {words[0]}"')
            found.append(
                (entry if context.flags.on("name-only") else path) + "\n" + "".join(f"  - {line}\n" for line in lines)
            )
            problems += lines
    if not found:
        raise CLIError("unable to find any kubectl plugins in your PATH")
    context.out("The following compatible plugins are available:\n\n" + "".join(found))
    if problems:
        count = len(problems)
        raise CLIError("one plugin warning was found" if count == 1 else f"{count} plugin warnings were found")
    return 0


COMMAND = Command(
    "plugin [flags]",
    "Provides utilities for interacting with plugins",
    children={
        "list": Command(
            "list",
            "List all visible plugin executables on a user's PATH",
            list_plugins,
            flags=(Flag("name-only", "bool", help="Show only the names of the programs."),),
        )
    },
)
