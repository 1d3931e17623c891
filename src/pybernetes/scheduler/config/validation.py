"""Validates a configuration, with upstream's messages and order."""

from __future__ import annotations

from typing import Final

import msgspec

from pybernetes.api.core.resourcenames import is_extended
from pybernetes.api.field import FieldError, Path, duplicate, invalid, required
from pybernetes.api.names import is_qualified_name
from pybernetes.api.times import parse_duration

from .plugins import POINTS, plugin_set
from .v1.args import ARGS
from .v1.types import (
    ClientConnectionConfiguration,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugin,
    Plugins,
    PluginSet,
)
from .validation_args import VALIDATORS

# Plugins that upstream has removed. It checks by the version of the core group, and says so.
REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})


def validate(config: KubeSchedulerConfiguration) -> list[FieldError]:
    """All that is wrong with a configuration that has its defaults."""
    errors = _client_connection(config.client_connection or ClientConnectionConfiguration(), Path("clientConnection"))
    errors += _leader_election(config.leader_election or LeaderElectionConfiguration(), Path("leaderElection"))
    if (config.parallelism or 0) <= 0:
        detail = "should be an integer value greater than zero"
        errors.append(invalid(Path("parallelism"), config.parallelism or 0, detail))
    errors += _profiles(config, Path("profiles"))
    errors += _percentage(config.percentage_of_nodes_to_score, Path("percentageOfNodesToScore"))
    initial, longest = config.pod_initial_backoff_seconds or 0, config.pod_max_backoff_seconds or 0
    if initial <= 0:
        errors.append(invalid(Path("podInitialBackoffSeconds"), initial, "must be greater than 0"))
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(invalid(Path("podMaxBackoffSeconds"), longest, detail))
    return errors + validate_extenders(config.extenders or [], Path("extenders"))


def _client_connection(connection: ClientConnectionConfiguration, path: Path) -> list[FieldError]:
    if (connection.burst or 0) < 0:
        return [invalid(path.child("burst"), connection.burst, "must be non-negative")]
    return []


def _leader_election(election: LeaderElectionConfiguration, path: Path) -> list[FieldError]:
    if not election.leader_elect:
        return []
    errors: list[FieldError] = []
    times: dict[str, int] = {}
    texts = {
        "leaseDuration": election.lease_duration or "0s",
        "renewDeadline": election.renew_deadline or "0s",
        "retryPeriod": election.retry_period or "0s",
    }
    for name, text in texts.items():
        times[name] = parse_duration(text)
        if times[name] <= 0:
            errors.append(invalid(path.child(name), text, "must be greater than zero"))
    if times["leaseDuration"] <= times["renewDeadline"]:
        detail = "must be greater than `RenewDeadline`"
        errors.append(invalid(path.child("leaseDuration"), texts["renewDeadline"], detail))
    if election.resource_lock != "leases":
        errors.append(
            invalid(path.child("resourceLock"), election.resource_lock, 'resourceLock value must be "leases"')
        )
    return errors


def _percentage(percentage: int | None, path: Path) -> list[FieldError]:
    if percentage is not None and not 0 <= percentage <= 100:
        return [invalid(path, percentage, "not in valid range [0-100]")]
    return []


def _profiles(config: KubeSchedulerConfiguration, path: Path) -> list[FieldError]:
    profiles = config.profiles or []
    if not profiles:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, profile in enumerate(profiles):
        errors += _profile(profile, path.index(index), config.api_version or "")
        name = profile.scheduler_name or ""
        if name in seen:
            # Upstream prints the path of the other one, whose fields are private: nothing is left of it.
            errors.append(duplicate(path.index(index).child("schedulerName"), {}))
        seen.add(name)
    return errors + _common_queue_sort(profiles, path)


def _profile(profile: KubeSchedulerProfile, path: Path, version: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not profile.scheduler_name:
        errors.append(required(path.child("schedulerName")))
    errors += _percentage(profile.percentage_of_nodes_to_score, path.child("percentageOfNodesToScore"))
    removed = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{version}")'
    for point in POINTS if profile.plugins else ():
        at = path.child("plugins").child(point).child("enabled")
        for index, plugin in enumerate(plugin_set(profile.plugins or Plugins(), point).enabled or ()):
            if plugin.name in REMOVED:
                errors.append(invalid(at.index(index), plugin.name, removed))
    seen: set[str] = set()
    for index, each in enumerate(profile.plugin_config or ()):
        at = path.child("pluginConfig").index(index)
        name = each.name or ""
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        if name in REMOVED:
            errors.append(invalid(at, name, removed))
        elif name in ARGS:
            errors += VALIDATORS[name](each.args, at.child("args"))
    return errors


def _common_queue_sort(profiles: list[KubeSchedulerProfile], path: Path) -> list[FieldError]:
    """There is one queue, so there is one order."""
    errors: list[FieldError] = []
    first, *others = [plugin_set(each.plugins or Plugins(), "queueSort") for each in profiles]
    sorters = [each.name for each in first.enabled or ()]
    if len(sorters) > 1:
        at = path.index(0).child("plugins", "queueSort", "Enabled")
        errors.append(invalid(at, len(sorters), "only one queue sort plugin can be enabled"))
    args = {each.name: each.args for each in profiles[0].plugin_config or ()}
    for index, each in enumerate(others, 1):
        if each != first:
            at = path.index(index).child("plugins", "queueSort")
            errors.append(invalid(at, _printed(each), "must be the same for all profiles"))
        for config in profiles[index].plugin_config or ():
            if sorters and config.name == sorters[0] and config.args != args.get(config.name):
                at = path.index(index).child("pluginConfig", "args")
                errors.append(invalid(at, config.args, "queueSort must be the same for all profiles"))
    return errors


class _PrintedPlugin(msgspec.Struct, rename="pascal"):
    name: str
    weight: int


class _PrintedSet(msgspec.Struct, rename="pascal"):
    """How upstream's own form of a set is printed."""

    enabled: list[_PrintedPlugin] | None
    disabled: list[_PrintedPlugin] | None


def _printed(found: PluginSet) -> _PrintedSet:
    def plugins(each: list[Plugin] | None) -> list[_PrintedPlugin] | None:
        return [_PrintedPlugin(plugin.name or "", plugin.weight or 0) for plugin in each] if each else None

    return _PrintedSet(plugins(found.enabled), plugins(found.disabled))


def validate_extenders(extenders: list[Extender], path: Path) -> list[FieldError]:
    """Weights, managed resources, and that at most one binds."""
    errors: list[FieldError] = []
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        at = path.index(index)
        if extender.prioritize_verb and (extender.weight or 0) <= 0:
            errors.append(
                invalid(at.child("weight"), extender.weight or 0, "must have a positive weight applied to it")
            )
        for number, resource in enumerate(extender.managed_resources or ()):
            where = at.child("managedResources").index(number).child("name")
            name = resource.name or ""
            wrong = [invalid(where, name, problem) for problem in is_qualified_name(name)]
            if not wrong and not is_extended(name):
                wrong = [invalid(where, name, "is an invalid extended resource name")]
            errors += wrong
            if name in managed:
                errors.append(invalid(where, name, "duplicate extender managed resource name"))
            managed.add(name)
    binders = sum(bool(each.bind_verb) for each in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        errors.append(invalid(path, found, "only one extender can implement bind"))
    return errors
