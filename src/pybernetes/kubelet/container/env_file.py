"""Variables from a file in a volume (`fileKeyRef`): lines of `NAME='value'`, a strict part of the shell's syntax.

What is between the quotes is taken as it is, over several lines if need be. `NAME= 'value'` is, as in a shell, an empty
value. Blank lines and comments are skipped, also behind a value. Everything else is refused.
"""

from __future__ import annotations


class EnvFileError(ValueError):
    """The file is not what it should be."""


def variable_of(text: str, key: str) -> str:
    """The value of a variable; empty if there is none. The file is read no further than the variable."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    number = 0
    while number < len(lines):
        line = lines[number].removesuffix("\r").lstrip(" \t")
        number += 1
        if not line or line.startswith("#"):
            continue
        name, value = _assignment(line, number)
        if not value.startswith("'"):
            if not value.startswith((" ", "\t")):
                raise _wrong(number, "value must be enclosed in single quotes")
            if name == key:
                return ""
            continue
        start, parts, rest = number, [], value[1:]
        while "'" not in rest:
            parts.append(rest)
            if number == len(lines):
                raise EnvFileError(
                    f"invalid environment variable format starting at line {start}: unclosed single quote"
                )
            rest = lines[number].removesuffix("\r")
            number += 1
        last, _, after = rest.partition("'")
        after = after.lstrip(" \t")
        if after and not after.startswith("#"):
            raise _wrong(number, "unexpected content after closing quote")
        if name == key:
            return "\n".join([*parts, last])
    return ""


def _assignment(line: str, number: int) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise _wrong(number, "missing '='")
    if not name.rstrip(" \t"):
        raise _wrong(number, "empty variable name")
    if name != name.rstrip(" \t"):
        raise _wrong(number, "whitespace before '=' is not allowed")
    return name, value


def _wrong(number: int, why: str) -> EnvFileError:
    return EnvFileError(f"invalid environment variable format at line {number}: {why}")
