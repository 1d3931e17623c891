"""Builds the scheduler's profiles from a configuration (`profiles.SchedulerSpec`): plugins, points, arguments."""

from __future__ import annotations

from typing import Any

from pybernetes.api import strict
from pybernetes.api.configfile import ConfigError
from pybernetes.api.gocompat.quote import quote

from ..extender import HTTPExtender
from ..framework.plugin import EXTENSION_POINTS, Plugin
from ..plugins import registry
from ..profiles import ProfileSpec, SchedulerSpec
from .plugins import POINTS, PluginsError, expand, names
from .v1.types import KubeSchedulerConfiguration, KubeSchedulerProfile, Plugins


def build(config: KubeSchedulerConfiguration, *, check_all_filters: bool = False) -> SchedulerSpec:
    """The scheduler that a valid configuration with its defaults describes.

    `ConfigError` when a plugin is not there or has not the extension point, or an extender's address is none.
    """
    profiles = [_profile(each) for each in config.profiles or ()]
    for profile in profiles:
        profile.check_all_filters = check_all_filters
    sorters = {tuple(each.points["queueSort"]) for each in profiles}
    if len(sorters) > 1:
        first = profiles[0].points["queueSort"][0]
        other = next(each for each in profiles if each.points["queueSort"][0] != first)
        raise ConfigError(
            f"different queue sort plugins for profile {quote(other.scheduler_name)}: "
            f"{quote(other.points['queueSort'][0])}, first: {quote(first)}"
        )
    try:
        extenders = [HTTPExtender(each) for each in config.extenders or ()]
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return SchedulerSpec(
        profiles=profiles,
        extenders=extenders,
        percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=float(config.pod_initial_backoff_seconds or 1),
        pod_max_backoff_seconds=float(config.pod_max_backoff_seconds or 10),
    )


def _profile(profile: KubeSchedulerProfile) -> ProfileSpec:
    plugins, name = profile.plugins or Plugins(), profile.scheduler_name or ""
    classes: dict[str, type[Plugin]] = {}
    for each in names(plugins):
        try:
            found = registry.load(each)
        except LookupError:
            continue  # `expand` says where it is missing
        except Exception as error:  # code of a custom plugin
            raise ConfigError(f"plugin {quote(each)} cannot be imported: {type(error).__name__}: {error}") from error
        if not isinstance(found, type) or not issubclass(found, Plugin):
            raise ConfigError(f"plugin {quote(each)} is no class that derives from Plugin")
        if found.name != each:
            raise ConfigError(f"plugin {quote(each)} calls itself {quote(found.name)}")
        classes[each] = found

    def implements(plugin: str, point: str) -> bool:
        # Points of features that are off have no class: nothing implements them.
        return point in EXTENSION_POINTS and issubclass(classes[plugin], EXTENSION_POINTS[point])

    try:
        expanded = expand(plugins, classes, implements, name)
    except PluginsError as error:
        raise ConfigError(f"initializing profiles: creating profile for scheduler name {name}: {error}") from None
    given = {each.name or "": each.args for each in profile.plugin_config or ()}
    return ProfileSpec(
        scheduler_name=name,
        points={point: [each.name for each in expanded[point]] for point in POINTS if point in EXTENSION_POINTS},
        weights={each.name: each.weight for each in expanded["score"]},
        args={each: _args(each, cls, given.get(each)) for each, cls in classes.items()},
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
    )


def _args(name: str, cls: type[Plugin], given: Any) -> Any:
    """Decode a plugin's arguments. Ours were decoded while loading; a custom plugin's are when its class is known."""
    if cls.Args is None or isinstance(given, cls.Args):
        return given
    try:
        args, unknown = strict.convert(cls.Args, {} if given is None else given)
    except strict.DecodeError as error:
        raise ConfigError(f"decoding args for plugin {name}: {error}") from None
    if unknown:
        raise ConfigError(f"decoding args for plugin {name}: {strict.strict_decoding_error(unknown)}")
    return args
