"""KYAML: YAML in flow style that cannot be misread; every string value is in double quotes."""

from __future__ import annotations

from pybernetes.kubectl.data import number
from pybernetes.kubectl.printers.yaml_text import _double, _reads_as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"


def dumps(value: Any) -> str:
    """One document with its `---`."""
    return f"---\n{_render(value, '')}\n"


def _render(value: Any, pad: str) -> str:
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = pad + "  "
        lines = [f"{inner}{_key(str(key))}: {_render(value[key], inner)},\n" for key in sorted(value)]
        return "{\n" + "".join(lines) + pad + "}"
    if isinstance(value, list):
        if not value:
            return "[]"
        if all(isinstance(each, dict | list) and each for each in value):
            return "[" + ", ".join(_render(each, pad) for each in value) + "]"
        inner = pad + "  "
        return "[\n" + "".join(f"{inner}{_render(each, inner)},\n" for each in value) + pad + "]"
    if isinstance(value, str):
        return _string(value, pad)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, float) else str(value)


def _key(key: str) -> str:
    if key and key[0].isalpha() and all(char in _SAFE for char in key) and _reads_as_text(key) and len(key) > 1:
        return key
    if key and all(char in _SAFE for char in key) and _reads_as_text(key) and key not in ("t", "f", "T", "F"):
        return key
    return _double(key)


def _string(text: str, pad: str) -> str:
    if "\n" not in text:
        return f'"{_escaped(text)}"'
    lines = text.split("\n")
    inner = pad + "  "
    out = ['"\\\n']
    for at, line in enumerate(lines):
        last = at == len(lines) - 1
        if last and not line:
            break
        body = _escaped(line)
        out.append(f"{inner} {body}" + ("\\\n" if last else "\\n\\\n"))
    return "".join(out) + f'{inner}"'


def _escaped(text: str) -> str:
    """The inside of double quotes; tabs stay as they are."""
    return "\t".join(_double(part)[1:-1] for part in text.split("\t"))
