"""Flags with the syntax and the messages of pflag, which kubectl's users and scripts rely on.

`--flag=value`, `--flag value`, `-f value`, `-fvalue`, `-f=value`, groups of shorthands (`-it`), flags after arguments,
`--` as the end of flags. A flag with `no_value` may stand without a value. `Flags` holds the values of one command.
"""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


class FlagError(CLIError):
    """A flag that does not exist or has a bad value; `main` adds how to get help."""


class Flag:
    """One flag: its kind is bool, int, string, duration, list (comma separated), array (repeated) or count."""

    __slots__ = ("default", "deprecated", "help", "hidden", "kind", "name", "no_value", "short")

    def __init__(
        self,
        name: str,
        kind: str = "string",
        default: Any = None,
        help: str = "",
        *,
        short: str = "",
        no_value: str | None = None,
        hidden: bool = False,
        deprecated: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = _DEFAULTS[kind]() if default is None else default
        self.help = help
        self.short = short
        self.no_value = (
            ("true" if kind == "bool" else "+1" if kind == "count" else None) if no_value is None else no_value
        )
        self.hidden = hidden
        self.deprecated = deprecated

    def parse(self, text: str) -> Any:
        """The value of a text; raises ValueError with Go's words."""
        return _PARSERS[self.kind](text)

    def label(self) -> str:
        """How a message calls the flag."""
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


def boolean(text: str) -> bool:
    """A bool as Go parses it. Raises ValueError."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _int(text: str) -> int:
    try:
        return int(text, 0) if not (text.lstrip("+-")[:1] == "0" and text.lstrip("+-")[1:].isdigit()) else int(text, 8)
    except ValueError:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def duration(text: str) -> float:
    """Seconds of a duration as Go writes it: `1h30m`, `0`, `-1.5s`."""
    rest = text.lstrip("+-") if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0.0
    total = 0.0
    if not rest:
        raise ValueError(f'time: invalid duration "{text}"')
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789."))
        number, rest = rest[:digits], rest[digits:]
        if not number or number == ".":
            raise ValueError(f'time: invalid duration "{text}"')
        letters = 0
        while letters < len(rest) and rest[letters] not in "0123456789.":
            letters += 1
        unit, rest = rest[:letters], rest[letters:]
        if not unit:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if unit not in _UNITS:
            raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
        total += float(number) * _UNITS[unit] / 1e9
    return -total if text.startswith("-") else total


def split_commas(text: str) -> list[str]:
    """The fields of one line of comma separated values, with quotes as in CSV."""
    if '"' not in text:
        return text.split(",") if text else []
    fields: list[str] = []
    field, quoted, position = "", False, 0
    while position < len(text):
        char = text[position]
        if quoted and text[position : position + 2] == '""':
            field += '"'
            position += 1
        elif char == '"':
            if not quoted and field:
                raise ValueError(f'parse error on line 1, column {position + 1}: bare " in non-quoted-field')
            quoted = not quoted
        elif char == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += char
        position += 1
    if quoted:
        raise ValueError(f'parse error on line 1, column {len(text) + 1}: extraneous or missing " in quoted-field')
    return [*fields, field]


_PARSERS: dict[str, Any] = {
    "bool": boolean,
    "string": str,
    "int": _int,
    "duration": duration,
    "list": split_commas,
    "array": lambda text: [text],
    "count": lambda text: text,
}
_DEFAULTS: dict[str, Any] = {
    "bool": bool,
    "string": str,
    "int": int,
    "duration": float,
    "list": list,
    "array": list,
    "count": int,
}


class Flags:
    """The values of a command's flags, by name."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self.known: dict[str, Flag] = {}
        self._short: dict[str, Flag] = {}
        self._values: dict[str, Any] = {}
        self._changed: set[str] = set()
        self.deprecations: list[str] = []
        for flag in flags:
            self.known.setdefault(flag.name, flag)
            if flag.short:
                self._short.setdefault(flag.short, flag)

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        return self.known[name].default

    def __contains__(self, name: str) -> bool:
        return name in self.known

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a flag that the command may not have."""
        return self[name] if name in self.known else default

    def text(self, name: str) -> str:
        """The value of a string flag."""
        return str(self[name])

    def on(self, name: str) -> bool:
        """Whether a bool flag is set; False where the command does not have it."""
        return bool(self.get(name, False))

    def number(self, name: str) -> int:
        """The value of an int flag."""
        return int(self[name])

    def words(self, name: str) -> list[str]:
        """The values of a list or array flag."""
        return list(self[name])

    def changed(self, name: str) -> bool:
        """Whether the user gave the flag."""
        return name in self._changed

    def set(self, name: str, text: str) -> None:
        """Sets a flag as the command line does. Raises FlagError."""
        flag = self.known[name]
        try:
            value = flag.parse(text)
        except ValueError as error:
            raise FlagError(f'invalid argument "{text}" for "{flag.label()}" flag: {error}') from None
        if flag.kind in ("list", "array"):
            value = (self._values.get(name, []) if name in self._changed else []) + value
        elif flag.kind == "count":
            value = self[name] + 1 if text == "+1" else _int(text)
        if flag.deprecated:
            self.deprecations.append(f"Flag --{name} has been deprecated, {flag.deprecated}")
        self._values[name] = value
        self._changed.add(name)

    def put(self, name: str, value: Any) -> None:
        """Sets a value without marking the flag as given."""
        self._values[name] = value

    def parse(self, argv: Sequence[str]) -> list[str]:
        """Takes the flags of a command line and returns its arguments. `dash` is the index of `--` in them, or -1."""
        arguments: list[str] = []
        self.dash = -1
        position = 0
        while position < len(argv):
            word = argv[position]
            position += 1
            if word == "--":
                self.dash = len(arguments)
                arguments += argv[position:]
                break
            if word.startswith("--"):
                position = self._long(word, argv, position)
            elif word.startswith("-") and len(word) > 1:
                position = self._shorts(word, argv, position)
            else:
                arguments.append(word)
        return arguments

    dash = -1

    def _long(self, word: str, argv: Sequence[str], position: int) -> int:
        name, equals, value = word[2:].partition("=")
        if not name or name[0] == "-":
            raise FlagError(f"bad flag syntax: {word}")
        flag = self.known.get(name)
        if flag is None:
            if name == "help":
                raise HelpWanted()
            raise FlagError(f"unknown flag: --{name}")
        if not equals:
            if flag.no_value is not None:
                value = flag.no_value
            elif position < len(argv):
                value = argv[position]
                position += 1
            else:
                raise FlagError(f"flag needs an argument: {word}")
        self.set(name, value)
        return position

    def _shorts(self, word: str, argv: Sequence[str], position: int) -> int:
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            flag = self._short.get(letter)
            if flag is None:
                if letter == "h":
                    raise HelpWanted()
                raise FlagError(f"unknown shorthand flag: '{letter}' in -{letter}{letters}")
            if letters.startswith("=") and len(letters) > 1:
                value, letters = letters[1:], ""
            elif flag.no_value is not None:
                value = flag.no_value
            elif letters:
                value, letters = letters, ""
            elif position < len(argv):
                value = argv[position]
                position += 1
            else:
                raise FlagError(f"flag needs an argument: '{letter}' in {word}")
            self.set(flag.name, value)
        return position


class HelpWanted(Exception):
    """`-h` or `--help` was given."""
