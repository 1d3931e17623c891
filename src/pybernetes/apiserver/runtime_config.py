"""--runtime-config: which groups, versions and resources are served, of those there are.

Keys are those of upstream: `api/all`, `api/ga`, `api/beta`, `api/alpha`, `GROUP/VERSION` (`api/v1` or `v1` for the core
group), `GROUP/VERSION/RESOURCE`. The more special wins. What this server does not have cannot be switched on.
"""

from __future__ import annotations

import argparse
import re

from pybernetes.api import scheme
from pybernetes.api.resources import ELSEWHERE, OPTIONAL, Resource

_GENERAL = {
    "api/all": re.compile(".*"),
    "api/ga": re.compile("v[0-9]+"),
    "api/beta": re.compile("v[0-9]+beta[0-9]+"),
    "api/alpha": re.compile("v[0-9]+alpha[0-9]+"),
}

RuntimeConfig = dict[str, bool]


def parse(text: str) -> RuntimeConfig:
    """The pairs of the flag. Raises ArgumentTypeError."""
    found: RuntimeConfig = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, equals, value = (each.strip() for each in part.partition("="))
        if equals and value not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"invalid value {key}={value}")
        found[key] = value != "false"
    return found


def check(config: RuntimeConfig) -> list[str]:
    """The groups, versions and resources in it that this server does not know."""
    every = [*scheme.resources(), *(each for each, _ in OPTIONAL)]
    groups = {each.group for each in every}
    versions = {(each.group, each.version) for each in every}
    plurals = {(each.group, each.version, each.plural) for each in every}
    problems = []
    for key in config:
        if key in _GENERAL:
            continue
        group, version, plural = _taken_apart(key)
        if group not in groups:
            problems.append(f"runtime-config: unknown api groups {group or key}")
        elif (group, version) not in versions:
            problems.append(f"runtime-config: group version {group}/{version} that has not been registered")
        elif plural and (group, version, plural) not in plurals:
            problems.append(f"runtime-config: unknown resource {key}")
    return problems


def _taken_apart(key: str) -> tuple[str, str, str]:
    parts = key.split("/")
    if parts[0] == "v1":
        parts = ["", *parts]
    elif parts[:2] == ["api", "v1"]:
        parts = ["", *parts[1:]]
    return parts[0], parts[1] if len(parts) > 1 else "", "/".join(parts[2:])


def enabled(config: RuntimeConfig, resource: Resource, default: bool) -> bool:
    """Whether a resource is served."""
    wanted = default
    for key, pattern in _GENERAL.items():
        if key in config and pattern.fullmatch(resource.version) and resource.group not in ELSEWHERE:
            wanted = config[key]
    special = {_taken_apart(key): value for key, value in config.items() if key not in _GENERAL}
    wanted = special.get((resource.group, resource.version, ""), wanted)
    return special.get((resource.group, resource.version, resource.plural), wanted)


def apply(config: RuntimeConfig) -> frozenset[Resource]:
    """Register the optional resources that --runtime-config enables; returns the resources that are not served."""
    known = {(each.group, each.version, each.plural) for each in scheme.resources()}
    for resource, priority in OPTIONAL:
        asked = enabled(config, resource, False)
        if asked and (resource.group, resource.version, resource.plural) not in known:
            scheme.add(resource, priority)
    optional = {each for each, _ in OPTIONAL}
    return frozenset(each for each in scheme.resources() if not enabled(config, each, each not in optional))
