"""Several errors as one text, as Go's aggregates are printed."""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(errors: Iterable[str]) -> str:
    """One error as it is, several in brackets, each once."""
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"
