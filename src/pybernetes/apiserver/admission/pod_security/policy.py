"""Levels and versions of the Pod Security Standards, and what a namespace's labels make of them.

Every mode (enforce, audit, warn) has a level and a version. Labels that cannot be read are errors when they are
written; if they are there all the same, enforce becomes the strictest and the others let everything pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from pybernetes.api import names
from pybernetes.api.field import FieldError, Path, duplicate, invalid

from ..configuration import check_kind

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
PREFIX: Final = "pod-security.kubernetes.io/"
LATEST: Final = "latest"
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)
_BAD_LEVEL: Final = f"must be one of {', '.join(LEVELS)}"
_BAD_VERSION: Final = 'must be "latest" or "v1.x"'
_LABELS: Final = Path("metadata", "labels")
_VERSIONS: Final = tuple(f"pod-security.admission.config.k8s.io/{each}" for each in ("v1", "v1beta1", "v1alpha1"))


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
    """What is done to pods that violate which level."""

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


class Defaults(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    """The policy of namespaces without labels."""

    enforce: str = ""
    enforce_version: str = ""
    audit: str = ""
    audit_version: str = ""
    warn: str = ""
    warn_version: str = ""


class Exemptions(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Who and what is not looked at."""

    usernames: list[str] = []
    namespaces: list[str] = []
    runtime_classes: list[str] = []


class Configuration(msgspec.Struct, forbid_unknown_fields=True):
    """The plugin's configuration."""

    defaults: Defaults = msgspec.field(default_factory=Defaults)
    exemptions: Exemptions = msgspec.field(default_factory=Exemptions)

    def policy(self) -> Policy:
        """The defaults as a policy."""
        of = self.defaults
        return Policy(
            LevelVersion(of.enforce or PRIVILEGED, of.enforce_version or LATEST),
            LevelVersion(of.audit or PRIVILEGED, of.audit_version or LATEST),
            LevelVersion(of.warn or PRIVILEGED, of.warn_version or LATEST),
        )


def read_configuration(configuration: Any) -> Configuration:
    """The configuration of the plugin, complete and sound. Raises ValueError."""
    if configuration is None:
        return Configuration()
    fields = check_kind(configuration, "PodSecurityConfiguration", _VERSIONS, "PodSecurity")
    fields = {key: value for key, value in fields.items() if value is not None}
    try:
        result = msgspec.convert(fields, Configuration)
    except msgspec.ValidationError as error:
        raise ValueError(f"PodSecurity: {error}") from None
    errors = _faults(result)
    if errors:
        raise ValueError(f"PodSecurity invalid: {'; '.join(str(each) for each in errors)}")
    return result


def _faults(configuration: Configuration) -> list[FieldError]:
    errors: list[FieldError] = []
    defaults = Path("defaults")
    for name, either in zip(("enforce", "audit", "warn"), configuration.policy(), strict=True):
        if either.level not in LEVELS:
            errors.append(invalid(defaults.child(name), either.level, _BAD_LEVEL))
        if either.version != LATEST and not _VERSION.fullmatch(either.version):
            errors.append(invalid(defaults.child(f"{name}-version"), either.version, _BAD_VERSION))
    exempt = configuration.exemptions
    for name, values, check in (
        ("namespaces", exempt.namespaces, names.is_dns1123_label),
        ("runtimeClasses", exempt.runtime_classes, names.is_dns1123_subdomain),
        ("usernames", exempt.usernames, lambda value: [] if value else ["username must not be empty"]),
    ):
        for index, value in enumerate(values):
            place = Path("exemptions", name).index(index)
            problems = check(value)
            if problems:
                errors.append(invalid(place, value, ", ".join(problems)))
            elif value in values[:index]:
                errors.append(duplicate(place, value))
    return errors


def policy_of(labels: Mapping[str, str] | None, defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """The policy of a namespace, and what is wrong with its labels."""
    if not labels:
        return defaults, []
    errors: list[FieldError] = []
    enforce, said = _mode("enforce", labels, defaults.enforce, RESTRICTED, errors)
    audit, _ = _mode("audit", labels, defaults.audit, PRIVILEGED, errors)
    warn, _ = _mode("warn", labels, defaults.warn, PRIVILEGED, errors)
    # Who enforces a level wants to be told about it, too: controllers' templates are only warned about.
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
        errors.append(invalid(_LABELS.key(label), level, _BAD_LEVEL))
        level, said = fallback, False
    version = labels.get(f"{label}-version", default.version)
    if version != LATEST and not _VERSION.fullmatch(version):
        errors.append(invalid(_LABELS.key(f"{label}-version"), version, _BAD_VERSION))
        version = LATEST
    return LevelVersion(level, version), said
