"""What changed in a value that must not change, shown as upstream shows it: a unified diff of two JSON texts."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Any


def diff(old: Any, new: Any) -> str:
    """The lines that differ with three lines around them; values are what upstream's internal types would print."""
    before, after = (json.dumps(each, indent=1, ensure_ascii=False).splitlines() for each in (old, new))
    lines = list(unified_diff(before, after, n=3, lineterm=""))[2:]  # without the names of files
    return "".join(f"{line}\n" for line in lines)
