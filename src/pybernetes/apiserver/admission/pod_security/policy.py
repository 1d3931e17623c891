"""Levels and versions of the Pod Security Standards, and what a namespace's labels make of them.

Every mode (enforce, audit, warn) has a level and a version. Labels that cannot be read are errors when they are
written; if they are there all the same, enforce becomes the strictest and the others let everything pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pybernetes.api.field import FieldError, Path, invalid

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
PREFIX: Final = "pod-security.kubernetes.io/"
LATEST: Final = "latest"
VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)
BAD_LEVEL: Final = f"must be one of {', '.join(LEVELS)}"
BAD_VERSION: Final = 'must be "latest" or "v1.x"'
_LABELS: Final = Path("metadata", "labels")


class LevelVersion(NamedTuple):
    """How strict, and by the rules of which release."""

    level: str
    version: str

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int | None:
        """The version as a number, None = the latest."""
        return None if self.version == LATEST else int(self.version[3:])


class Policy(NamedTuple):
    """The level and version for each mode: enforce, audit, warn."""

    enforce: LevelVersion
    audit: LevelVersion
    warn: LevelVersion

    @property
    def privileged(self) -> bool:
        """Whether everything passes in silence."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def means(self, other: Policy) -> bool:
        """Whether both come to the same; the version of a level that lets everything pass does not count."""
        return all(a == b or a.level == b.level == PRIVILEGED for a, b in zip(self, other, strict=True))


LENIENT: Final = Policy(*[LevelVersion(PRIVILEGED, LATEST)] * 3)
"""The policy without any configuration."""


def policy_of(labels: Mapping[str, str] | None, defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """The policy of a namespace, and what is wrong with its labels."""
    if not labels:
        return defaults, []
    errors: list[FieldError] = []
    enforce, said = _mode("enforce", labels, defaults.enforce, RESTRICTED, errors)
    audit, _ = _mode("audit", labels, defaults.audit, PRIVILEGED, errors)
    warn, _ = _mode("warn", labels, defaults.warn, PRIVILEGED, errors)
    # Enforcing a level implies warning about it, too: controllers' templates are only warned about.
    if said and f"{PREFIX}warn" not in labels and LEVELS.index(enforce.level) > LEVELS.index(warn.level):
        version = warn.version if f"{PREFIX}warn-version" in labels else enforce.version
        warn = LevelVersion(enforce.level, version)
    return Policy(enforce, audit, warn), errors


def _mode(
    name: str, labels: Mapping[str, str], default: LevelVersion, fallback: str, errors: list[FieldError]
) -> tuple[LevelVersion, bool]:
    """The level and version of a mode, and whether the level was said and understood."""
    label = f"{PREFIX}{name}"
    level = labels.get(label, default.level)
    said = label in labels
    if said and level not in LEVELS:
        errors.append(invalid(_LABELS.key(label), level, BAD_LEVEL))
        level, said = fallback, False
    version = labels.get(f"{label}-version", default.version)
    if version != LATEST and not VERSION.fullmatch(version):
        errors.append(invalid(_LABELS.key(f"{label}-version"), version, BAD_VERSION))
        version = LATEST
    return LevelVersion(level, version), said
