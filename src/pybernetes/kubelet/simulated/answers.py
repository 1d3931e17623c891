"""The output of a simulated container: lines of its log, responses to commands and to connections. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

LEAST_PAUSE: Final = 0.01
"""Seconds between two lines of a log, at least."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log; `age` of its container in seconds."""

    age: float
    text: str


@dataclass(frozen=True, slots=True)
class Log:
    """A container's log: all lines at its start, or one after the other with a pause, again and again.

    `{n}` in a line is the number of the line.
    """

    lines: tuple[str, ...] = ()
    pause: float = 0.0

    def count(self, age: float) -> int:
        """How many lines there are at this age."""
        if not self.lines or age < 0:
            return 0
        return int(age / self.pause) + 1 if self.pause else len(self.lines)

    def line(self, index: int) -> Line:
        """One of them."""
        text = self.lines[index % len(self.lines)].replace("{n}", str(index + 1))
        return Line(index * self.pause, text)

    def between(self, first: int, end: int) -> Iterator[Line]:
        """Some of them."""
        return (self.line(index) for index in range(first, end))


@dataclass(frozen=True, slots=True)
class Command:
    """The response to a command; the first whose pattern matches is used."""

    pattern: str = "*"
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    echo: bool = False
    """Whether stdin is copied to stdout, up to its end."""

    def fits(self, command: Sequence[str]) -> bool:
        """Whether it is about this command."""
        return fnmatchcase(" ".join(command), self.pattern)


class _Command(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    command: str = "*"
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    echo: bool = False


def read_commands(text: str) -> tuple[Command, ...]:
    """A list of `{command, stdout, stderr, exitCode, echo}` in JSON or YAML. Raises ValueError."""
    found = _convert(text, list[_Command])
    for each in found:
        if not 0 <= each.exit_code <= 255:
            raise ValueError(f"not an exit code (0 to 255): {each.exit_code}")
    return tuple(Command(each.command, each.stdout, each.stderr, each.exit_code, each.echo) for each in found)


def read_ports(text: str) -> Mapping[int, str]:
    """An object from port to the text that an HTTP client gets there, in JSON or YAML. Raises ValueError."""
    found = _convert(text, dict[str, str])
    for each in found:
        if not each.isdecimal() or not 0 < int(each) < 65536:
            raise ValueError(f"not a port: {each!r}")
    return {int(port): answer for port, answer in found.items()}


def _convert(text: str, type: Any) -> Any:
    from pybernetes.api.yaml import YAMLProblem, yaml_to_json

    try:
        return msgspec.json.decode(yaml_to_json(text.encode())[0], type=type)
    except (YAMLProblem, msgspec.ValidationError) as error:
        raise ValueError(str(error)) from None
