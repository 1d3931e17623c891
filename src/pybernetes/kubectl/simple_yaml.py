"""Reads the plain YAML of kubeconfigs without the YAML library, whose import costs more than a request.

Block maps and lists of plain and quoted texts. Everything else (anchors, flow style, block texts, tabs, numbers, dates,
words that YAML 1.1 takes for booleans) is left to the real parser: `parse` then answers with None.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Line = tuple[int, str]

_WORDS = {"true": True, "false": False, "null": None, "~": None}
_ODD = ("yes", "no", "on", "off", "y", "n")
_STARTS = "&*!|>%@`{}[],#?:-=<"
_NUMERIC = "0123456789.+-_:eExXoObBaAfFnNiI"


class _Odd(Exception):
    """Something that this parser does not know."""


def parse(raw: bytes) -> Any | None:
    """The document, or None where the real parser must read it."""
    try:
        lines = _lines(raw.decode("ascii"))
        if not lines:
            return None
        value, at = _block(lines, 0, lines[0][0])
        return value if at == len(lines) else None
    except (_Odd, UnicodeDecodeError, RecursionError):
        return None


def _lines(text: str) -> list[Line]:
    found: list[Line] = []
    for line in text.split("\n"):
        bare = line.strip(" \r")
        if not bare or bare[0] == "#":
            continue
        if "\t" in line or "\r" in line.rstrip("\r") or bare in ("---", "...") or bare.startswith(("--- ", "%")):
            if bare == "---" and not found:
                continue
            raise _Odd
        found.append((len(line) - len(line.lstrip(" ")), bare))
    return found


def _block(lines: list[Line], at: int, indent: int) -> tuple[Any, int]:
    if lines[at][1].startswith("- ") or lines[at][1] == "-":
        return _list(lines, at, indent)
    return _map(lines, at, indent)


def _list(lines: list[Line], at: int, indent: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while at < len(lines) and lines[at][0] == indent and (lines[at][1].startswith("- ") or lines[at][1] == "-"):
        rest = lines[at][1][2:].lstrip(" ")
        if not rest or rest[0] == "#":
            at += 1
            if at >= len(lines) or lines[at][0] <= indent:
                raise _Odd
            value, at = _block(lines, at, lines[at][0])
        elif _key(rest) is not None or rest.startswith("- "):
            inner = indent + len(lines[at][1]) - len(rest)
            lines[at] = (inner, rest)
            value, at = _block(lines, at, inner)
        else:
            value, at = _scalar(rest), at + 1
        found.append(value)
    return found, at


def _map(lines: list[Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent:
        text = lines[at][1]
        key = _key(text)
        if key is None or key in found:
            raise _Odd
        rest = text[len(key) + 1 :].strip(" ")
        at += 1
        if rest and rest[0] != "#":
            found[key] = _scalar(rest)
        elif at < len(lines) and lines[at][0] > indent:
            found[key], at = _block(lines, at, lines[at][0])
        elif at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
            found[key], at = _list(lines, at, indent)
        else:
            found[key] = None
    if at < len(lines) and lines[at][0] > indent:
        raise _Odd
    return found, at


def _key(text: str) -> str | None:
    """The plain key that a line begins with."""
    name, colon, rest = text.partition(":")
    if colon and (not rest or rest[0] == " ") and name and all(char.isalnum() or char in "-_./" for char in name):
        if name.lower() in _ODD or name.lower() in _WORDS or name[0] in _NUMERIC[:13] or name[0] == "-":
            raise _Odd
        return name
    return None


def _scalar(text: str) -> Any:
    if text in ("{}", "[]"):
        return {} if text == "{}" else []
    if text[0] in "\"'":
        inner = text[1:-1]
        if len(text) < 2 or text[-1] != text[0] or text[0] in inner or "\\" in inner:
            raise _Odd
        return inner
    if text[0] in _STARTS or ": " in text or " #" in text or text.endswith(":"):
        raise _Odd
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in _ODD or text.lower() in _WORDS:
        raise _Odd
    if all(char in _NUMERIC for char in text) and any(char.isdigit() or char == "." for char in text):
        raise _Odd
    return text
