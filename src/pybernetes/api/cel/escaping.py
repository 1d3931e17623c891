"""Property names as identifiers: what CEL could not read is written between double underscores."""

from __future__ import annotations

import re

RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SPECIAL = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = {written: plain for plain, written in _SPECIAL.items()}
_MATCH = re.compile(r"__|[-./]")
_VALID = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_WRITTEN = re.compile(r"__[^_]+__")


def escape(name: str) -> str | None:
    """The identifier for a property, or None if it has none."""
    if name in RESERVED:
        return f"__{name}__"
    if not _VALID.fullmatch(name):
        return None
    return _MATCH.sub(lambda match: _SPECIAL[match[0]], name)


def unescape(identifier: str) -> str | None:
    """The property that an identifier names, or None if it is written wrongly."""
    if identifier.startswith("__") and identifier.endswith("__") and identifier[2:-2] in RESERVED:
        return identifier[2:-2]
    if any(match not in _ESCAPED for match in _WRITTEN.findall(identifier)):
        return None
    return _WRITTEN.sub(lambda match: _ESCAPED[match[0]], identifier)
