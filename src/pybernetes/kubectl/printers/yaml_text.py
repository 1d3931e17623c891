"""YAML as upstream's encoder writes it: sorted keys, lists at the column of their key, quotes only where needed."""

from __future__ import annotations

import re

from pybernetes.kubectl.data import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WORDS = (
    frozenset(
        word
        for base in ("y", "yes", "on", "n", "no", "off", "true", "false", "null")
        for word in (base, base.capitalize(), base.upper())
    )
    | {"~", "", ".nan", ".NaN", ".NAN", "<<"}
    | {sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")}
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]|[ ])([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.[0-9]+)?(?:[Zz]|[-+][0-9]{2}:[0-9]{2}| [-+][0-9]+)?)?"
)
_WIDTH = 80
"""A scalar is broken at the next space when its line is longer than this."""
_FIRST = "#,[]{}&*!|>'\"%@`"
_LAST_BREAKS = "\n\r\x85\u2028\u2029"
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
"""Most values: nothing about them can be misread, unless they are one of the words."""
_SHORT = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\u2028": "\\L", "\u2029": "\\P", "\xa0": "\\_",
}  # fmt: skip


def dumps(value: Any, sort: bool = True) -> str:
    """One YAML document, ending in a newline."""
    if isinstance(value, dict) and value:
        return "\n".join(_mapping(value, 0, sort)) + "\n"
    if isinstance(value, list | tuple) and value:
        return "\n".join(_sequence(value, 0, sort)) + "\n"
    return _scalar_block(value, 0, False) + "\n"


def _mapping(value: dict[str, Any], indent: int, sort: bool) -> list[str]:
    lines: list[str] = []
    pad = " " * indent
    for key in sorted(value, key=_natural) if sort else value:
        each = value[key]
        name = scalar(str(key), True, True)
        if isinstance(each, dict) and each:
            lines.append(f"{pad}{name}:")
            lines += _mapping(each, indent + 2, sort)
        elif isinstance(each, list | tuple) and each:
            lines.append(f"{pad}{name}:")
            lines += _sequence(each, indent, sort)
        else:
            lines.append(f"{pad}{name}: {_scalar_block(each, indent, True, indent + len(name) + 2)}")
    return lines


def _sequence(value: Any, indent: int, sort: bool) -> list[str]:
    lines: list[str] = []
    pad = " " * indent
    for each in value:
        if isinstance(each, dict) and each:
            inner = _mapping(each, indent + 2, sort)
        elif isinstance(each, list | tuple) and each:
            inner = _sequence(each, indent + 2, sort)
        else:
            lines.append(f"{pad}- {_scalar_block(each, indent, True, indent + 2)}")
            continue
        inner[0] = f"{pad}- {inner[0][indent + 2 :]}"
        lines += inner
    return lines


def _natural(key: str) -> Any:
    """The order of keys in upstream's YAML: numbers in them by value, letters before other characters."""
    return _Natural(str(key))


class _Natural:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: _Natural) -> bool:
        left, right = self.text, other.text
        digits = False
        for at in range(min(len(left), len(right))):
            a, b = left[at], right[at]
            if a == b:
                digits = a.isdigit()
                continue
            if a.isalpha() and b.isalpha():
                return a < b
            if a.isalpha() or b.isalpha():
                if digits:
                    return a.isalpha()
                return b.isalpha()
            return _numbers(left, right, at)
        return len(left) < len(right)


def _numbers(left: str, right: str, at: int) -> bool:
    a, b = left[at], right[at]
    zeros = False
    if a == "0" or b == "0":
        back = at - 1
        while back >= 0 and left[back].isdigit():
            if left[back] != "0":
                zeros = True
                break
            back -= 1
    _ = zeros
    i = at
    j = at
    first = second = 0
    while i < len(left) and left[i].isdigit():
        first = first * 10 + int(left[i])
        i += 1
    while j < len(right) and right[j].isdigit():
        second = second * 10 + int(right[j])
        j += 1
    if first != second and i > at and j > at:
        return first < second
    if i != j and i > at and j > at:
        return i < j
    return a < b


def _scalar_block(value: Any, indent: int, nested: bool, column: int = 0) -> str:
    if isinstance(value, str):
        if "\n" in value:
            return _multiline(value, indent if nested else -2, column)
        text = scalar(value)
        return text if column + len(text) <= _WIDTH or " " not in text else fold(text, column, indent + 2)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return str(value)


def fold(text: str, column: int, indent: int) -> str:
    """Breaks a long scalar at single spaces once its line is full."""
    double = text[0] == '"'
    quoted = double or text[0] == "'"
    out: list[str] = []
    spaces = False
    last = len(text) - 1
    at = 0
    while at <= last:
        char = text[at]
        if char == " ":
            inside = 1 < at < last - 1 if quoted else True
            following = text[at + 1] if at < last else " "
            if not spaces and column > _WIDTH and inside and (double or following != " "):
                out.append("\n" + " " * indent)
                column = indent
                if double and following == " ":
                    out.append("\\")
                    column += 1
            else:
                out.append(char)
                column += 1
            spaces = True
        else:
            width = 2 if double and char == "\\" else 1
            if width == 2:
                width = {"x": 4, "u": 6, "U": 10}.get(text[at + 1], 2)
            out.append(text[at : at + width])
            column += width
            spaces = False
            at += width - 1
        at += 1
    return "".join(out)


def _float(value: float) -> str:
    if value.is_integer() and abs(value) < 1e21:
        text = number(value)
        return text if len(text.lstrip("-")) < 22 else repr(value)
    return number(value)


def scalar(text: str, plain_allowed: bool = True, key: bool = False) -> str:
    """A string of one line (or a key) with the quotes it needs."""
    if _PLAIN.fullmatch(text) and text not in _WORDS:
        return text
    if "\n" in text or not text or not _reads_as_text(text):
        return _double(text)
    block_plain, single = _analyze(text)
    if block_plain:
        return text
    if single:
        return "'" + text.replace("'", "''") + "'"
    return _double(text)


def _reads_as_text(text: str) -> bool:
    """Whether the text without quotes would be read as a string."""
    if text in _WORDS:
        return False
    if text[0] in "+-.0123456789":
        bare = text.replace("_", "")
        if (_INT.fullmatch(bare) and len(bare) < 66) or _FLOAT.fullmatch(bare) or _BASE60.fullmatch(text):
            return False
        found = _DATE.fullmatch(text)
        if found and 1 <= int(found[2]) <= 12 and 1 <= int(found[3]) <= 31:
            return False
    return True


def _analyze(text: str) -> tuple[bool, bool]:
    """Whether a text of one line may stand without quotes, and whether in single ones."""
    indicators = text.startswith(("---", "..."))
    special = False
    last = len(text) - 1
    for at, char in enumerate(text):
        after = at == last or text[at + 1] in " \t\n\r\x85\u2028\u2029"
        if at == 0:
            if char in _FIRST or (char in "?:" and after) or (char == "-" and after):
                indicators = True
        elif (char == ":" and after) or (char == "#" and text[at - 1] in " \t"):
            indicators = True
        if not _printable(char):
            special = True
    if special:
        return False, False
    edges = text[0] == " " or text[-1] == " "
    return not (indicators or edges), True


def _printable(char: str) -> bool:
    code = ord(char)
    return (
        0x20 <= code <= 0x7E
        or code == 0x0A
        or (0xA0 <= code <= 0xD7FF)
        or (0xE000 <= code <= 0xFFFD and code != 0xFEFF)
        or 0x10000 <= code <= 0x10FFFF
    )


def _double(text: str) -> str:
    out = []
    for char in text:
        if char in _SHORT:
            out.append(_SHORT[char])
        elif _printable(char):
            out.append(char)
        elif ord(char) <= 0xFF:
            out.append(f"\\x{ord(char):02X}")
        elif ord(char) <= 0xFFFF:
            out.append(f"\\u{ord(char):04X}")
        else:
            out.append(f"\\U{ord(char):08X}")
    return '"' + "".join(out) + '"'


def _multiline(text: str, indent: int, column: int = 0) -> str:
    """A block of lines, or double quotes where a block could not hold the text."""
    space_before_break = " \n" in text
    if text.endswith(" ") or space_before_break or not all(_printable(char) for char in text):
        quoted = _double(text)
        return quoted if column + len(quoted) <= _WIDTH else fold(quoted, column, indent + 2)
    hint = ""
    if text[0] in " \n":
        hint += "2"
    if not text.endswith("\n"):
        hint += "-"
    elif len(text) == 1 or text[-2] == "\n":
        hint += "+"
    pad = " " * (indent + 2)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    body = "\n".join(pad + line if line else "" for line in lines)
    return f"|{hint}\n{body}"
