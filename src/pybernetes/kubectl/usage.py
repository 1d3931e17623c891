"""The help of kubectl and of each command."""

from __future__ import annotations

from pybernetes.kubectl.command import Command, load
from pybernetes.kubectl.commands import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.flags import Flag


def root() -> str:
    """`kubectl`, `kubectl help`."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, (_, group, short) in COMMANDS.items():
        if group:
            groups.setdefault(group, []).append((name, short))
    lines = ["kubectl controls a Kubernetes cluster.", ""]
    width = max(len(name) for name in COMMANDS)
    for group, commands in groups.items():
        lines.append(f"{group}:")
        lines += [f"  {name:{width}} {short}" for name, short in commands]
        lines.append("")
    lines += [
        "Usage:",
        "  kubectl [flags] [options]",
        "",
        'Use "kubectl <command> --help" for more information about a given command.',
        'Use "kubectl options" for a list of global command-line options (applies to all commands).',
    ]
    return "\n".join(lines) + "\n"


def command(subject: Command, path: list[str]) -> str:
    """`kubectl COMMAND --help`."""
    name = " ".join(path)
    lines = [subject.long or subject.short]
    if not lines[0].endswith("."):
        lines[0] += "."
    lines.append("")
    if subject.aliases:
        lines += ["Aliases:", ", ".join([subject.name, *subject.aliases]), ""]
    if subject.examples:
        lines += ["Examples:", *(f"  {line}" if line else "" for line in subject.examples.strip("\n").split("\n")), ""]
    if subject.children:
        lines.append("Available Commands:")
        children = {key: load(each) if isinstance(each, str) else each for key, each in subject.children.items()}
        width = max(13, *(len(key) for key in children))
        lines += [f"  {key:{width}} {each.short}" for key, each in sorted(children.items()) if not each.hidden]
        lines.append("")
    shown = [flag for flag in sorted(subject.flags, key=lambda flag: flag.name) if not flag.hidden]
    if shown:
        lines.append("Options:")
        for flag in shown:
            lines += [*flag_lines(flag), ""]
    lines.append("Usage:")
    rest = subject.use.partition(" ")[2]
    if subject.children and subject.run is None:
        lines.append(f"  {name} {rest + ' ' if rest else '[flags] '}[options]")
    else:
        lines.append(f"  {name}{' ' + rest if rest else ''} [options]")
    lines.append("")
    if subject.children:
        lines.append(f'Use "{name} <command> --help" for more information about a given command.')
    lines.append('Use "kubectl options" for a list of global command-line options (applies to all commands).')
    return "\n".join(lines) + "\n"


def flag_lines(flag: Flag) -> list[str]:
    """A flag with its default, and its help below it."""
    short = f"-{flag.short}, " if flag.short and flag.short != flag.name else "    "
    return [f"    {short}--{flag.name}={default_text(flag)}:", f"\t{flag.help}"]


def default_text(flag: Flag) -> str:
    """The default of a flag as pflag prints it."""
    if flag.kind == "bool":
        return "true" if flag.default else "false"
    if flag.kind in ("list", "array"):
        return f"[{','.join(flag.default)}]"
    if flag.kind == "duration":
        return duration_text(flag.default)
    if flag.kind == "int":
        return str(flag.default)
    return f"'{flag.default}'"


def duration_text(seconds: float) -> str:
    """Seconds as Go prints a duration."""
    if seconds == 0:
        return "0s"
    sign, left = ("-", -seconds) if seconds < 0 else ("", seconds)
    if left < 1:
        return f"{sign}{left * 1000:g}ms"
    hours, left = divmod(left, 3600)
    minutes, left = divmod(left, 60)
    text = f"{int(hours)}h" if hours else ""
    if hours or minutes:
        text += f"{int(minutes)}m"
    return f"{sign}{text}{left:g}s"


def unknown_command(word: str) -> str:
    """The message for a command that does not exist, with the ones that are spelled like it."""
    near = sorted(
        name
        for name, (_, group, _) in COMMANDS.items()
        if not group.endswith("upstream")
        and (_distance(word, name) <= 2 or name.startswith(word.lower()) or word.lower() in _OTHER_NAMES.get(name, ()))
    )
    text = f'unknown command "{word}" for "kubectl"'
    if near:
        text += "\n\nDid you mean this?\n" + "".join(f"\t{name}\n" for name in near)
    return text


_OTHER_NAMES = {"delete": ("rm", "remove"), "describe": ("inspect",), "get": ("list", "ls"), "top": ("stats",)}
"""Words that people try for a command."""


def _distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for at, char in enumerate(left.lower(), 1):
        previous, row[0] = row[0], at
        for index, other in enumerate(right.lower(), 1):
            previous, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, previous + (char != other))
    return row[-1]
