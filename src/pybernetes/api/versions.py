"""The order of version names: stable before beta before alpha, greater before smaller, then others by name."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile("v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}


def priority(version: str) -> tuple[int, int, int, str]:
    """The sort key of versions, the most preferred first: v2, v1, v1beta2, v1beta1, v1alpha1, foo."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return 1, 0, 0, version
    number, stage, minor = found.groups()
    return 0, -_STAGES[stage], -int(number) * 100000 - int(minor or 0), ""


def newer(version: str, than: str) -> bool:
    """Whether a version is more wanted than another."""
    return priority(version) < priority(than)
