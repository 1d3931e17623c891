"""How upstream shows values of its internal types in messages.

A value is printed as JSON with the fields in Go's order (maps of ours would be sorted); what changed in a value that
must not change is shown as a unified diff of two such texts.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


def diff(old: Any, new: Any) -> str:
    """The lines that differ with three lines around them; values are what upstream's internal types would print."""
    from difflib import unified_diff

    before, after = (json.dumps(each, indent=1, ensure_ascii=False).splitlines() for each in (old, new))
    lines = list(unified_diff(before, after, n=3, lineterm=""))[2:]  # without the names of files
    return "".join(f"{line}\n" for line in lines)


def in_key_order(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """A map as Go prints it."""
    return None if value is None else dict(sorted(value.items()))


def in_order(value: Any) -> msgspec.Raw:
    """A value for a field error that is printed with its keys in the order they have here."""
    return msgspec.Raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
