"""The configuration of PodSecurity: the policy of namespaces without labels, and who is exempt."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pybernetes.api import names
from pybernetes.api.field import FieldError, Path, duplicate, invalid

from ..configuration import check_kind
from .policy import BAD_LEVEL, BAD_VERSION, LATEST, LEVELS, PRIVILEGED, VERSION, LevelVersion, Policy

_VERSIONS: Final = tuple(f"pod-security.admission.config.k8s.io/{each}" for each in ("v1", "v1beta1", "v1alpha1"))


class Defaults(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    """The policy of namespaces without labels."""

    enforce: str = ""
    enforce_version: str = ""
    audit: str = ""
    audit_version: str = ""
    warn: str = ""
    warn_version: str = ""


class Exemptions(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The exempt users, runtime classes and namespaces."""

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
            errors.append(invalid(defaults.child(name), either.level, BAD_LEVEL))
        if either.version != LATEST and not VERSION.fullmatch(either.version):
            errors.append(invalid(defaults.child(f"{name}-version"), either.version, BAD_VERSION))
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
