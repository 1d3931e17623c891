"""Which plugins run where: the default list, how a profile changes it, and its expansion by extension point.

Merging follows upstream: what is disabled (by name, or all by `*`) goes; a default plugin that is enabled again keeps
its place and takes the new weight; other plugins come after the defaults. `multiPoint` is expanded when it is known
what each plugin implements: first what the point itself names of it, then the rest of `multiPoint`, then what only the
point names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pybernetes.api.gocompat.quote import quote

from .v1.types import Plugin, Plugins, PluginSet

MULTI_POINT: Final = "multiPoint"

# Extension point -> what upstream calls a plugin of it, in upstream's order of checking.
POINTS: Final[dict[str, str]] = {
    "preFilter": "PreFilterPlugin",
    "filter": "FilterPlugin",
    "postFilter": "PostFilterPlugin",
    "reserve": "ReservePlugin",
    "preScore": "PreScorePlugin",
    "score": "ScorePlugin",
    "preBind": "PreBindPlugin",
    "bind": "BindPlugin",
    "postBind": "PostBindPlugin",
    "permit": "PermitPlugin",
    "preEnqueue": "PreEnqueuePlugin",
    "queueSort": "QueueSortPlugin",
    "placementGenerate": "PlacementGeneratePlugin",
    "placementScore": "PlacementScorePlugin",
}

# Name and weight, in the order in which they run; upstream's, with the features that are on by default in 1.36.
DEFAULTS: Final[tuple[tuple[str, int | None], ...]] = (
    ("SchedulingGates", None),
    ("PrioritySort", None),
    ("NodeUnschedulable", None),
    ("NodeName", None),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", None),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", None),
    ("NodeVolumeLimits", None),
    ("VolumeBinding", None),
    ("VolumeZone", None),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", None),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", None),
    ("NodeDeclaredFeatures", None),
)

MAX_SCORE: Final = 100
MAX_TOTAL_SCORE: Final = 2**63 - 1

_FIELDS = {wire: name for name, wire in zip(Plugins.__struct_fields__, Plugins.__struct_encode_fields__, strict=True)}


class PluginsError(ValueError):
    """Plugins that cannot run together; the words are upstream's."""


class Enabled(NamedTuple):
    """A plugin at an extension point."""

    name: str
    weight: int


def default_plugins() -> Plugins:
    """The plugins of a profile without a `plugins` field."""
    return Plugins(multi_point=PluginSet(enabled=[Plugin(name=name, weight=weight) for name, weight in DEFAULTS]))


def plugin_set(plugins: Plugins, point: str) -> PluginSet:
    """The plugin set of an extension point (or `multiPoint`); never None."""
    return getattr(plugins, _FIELDS[point]) or PluginSet()


def merge(defaults: Plugins, custom: Plugins | None) -> Plugins:
    """The defaults with what a profile changes."""
    if custom is None:
        return defaults
    merged = Plugins()
    for point, name in _FIELDS.items():
        both = _merge_set(plugin_set(defaults, point), plugin_set(custom, point))
        if both.enabled or both.disabled:
            setattr(merged, name, both)
    return merged


def _merge_set(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    disabled = [Plugin(name=each.name) for each in (*(custom.disabled or ()), *(defaults.disabled or ()))]
    gone = {each.name for each in disabled}
    places = {each.name: index for index, each in enumerate(custom.enabled or ())}
    enabled: list[Plugin] = []
    taken: set[int] = set()
    if "*" not in gone:
        for each in defaults.enabled or ():
            if each.name in gone:
                continue
            place = places.get(each.name)
            if place is not None:
                taken.add(place)
                each = (custom.enabled or ())[place]
            enabled.append(each)
    enabled += [each for index, each in enumerate(custom.enabled or ()) if index not in taken]
    return PluginSet(enabled=enabled or None, disabled=disabled or None)


def names(plugins: Plugins) -> list[str]:
    """Every plugin that is enabled anywhere, sorted."""
    return sorted({each.name or "" for point in _FIELDS for each in plugin_set(plugins, point).enabled or ()})


Implements = Callable[[str, str], bool]
"""Whether a plugin (by name) has an extension point."""


def expand(
    plugins: Plugins, known: Iterable[str], implements: Implements, scheduler_name: str
) -> dict[str, list[Enabled]]:
    """The plugins of every extension point in the order in which they run; `PluginsError` if that cannot be.

    `known` are the plugins that there are.
    """
    known = frozenset(known)
    for point, kind in POINTS.items():
        _check(plugin_set(plugins, point), point, kind, known, implements)
    expanded = {point: _expand(plugins, point, kind, known, implements) for point, kind in POINTS.items()}
    if len(expanded["queueSort"]) != 1:
        raise PluginsError(
            f"only one queue sort plugin required for profile with scheduler name {quote(scheduler_name)}, "
            f"but got {len(expanded['queueSort'])}"
        )
    if not expanded["bind"]:
        raise PluginsError(
            f"at least one bind plugin is needed for profile with scheduler name {quote(scheduler_name)}"
        )
    weights = _weights(plugins, implements)
    return {point: [Enabled(name, weights.get(name, 1)) for name in each] for point, each in expanded.items()}


def _check(found: PluginSet, point: str, kind: str, known: frozenset[str], implements: Implements) -> None:
    seen: set[str] = set()
    for each in found.enabled or ():
        name = each.name or ""
        if name not in known:
            raise PluginsError(f"{kind} {quote(name)} does not exist")
        if not implements(name, point):
            raise PluginsError(f"plugin {quote(name)} does not extend {kind} plugin")
        if name in seen:
            raise PluginsError(f"plugin {quote(name)} already registered as {quote(kind)}")
        seen.add(name)


def _expand(plugins: Plugins, point: str, kind: str, known: frozenset[str], implements: Implements) -> list[str]:
    found = plugin_set(plugins, point)
    own = [each.name or "" for each in found.enabled or ()]
    disabled = {each.name for each in found.disabled or ()}
    if "*" in disabled:
        return own
    overridden: set[str] = set()
    multi: list[str] = []
    for each in plugin_set(plugins, MULTI_POINT).enabled or ():
        name = each.name or ""
        if name not in known:
            raise PluginsError(f"{kind} {quote(name)} does not exist")
        if not implements(name, point) or name in disabled:
            continue
        if name in own:
            overridden.add(name)
            continue
        if name in multi:
            raise PluginsError(f"plugin {quote(name)} already registered as {quote(kind)}")
        multi.append(name)
    first = [name for name in own if name in overridden]
    return [*first, *multi, *(name for name in own if name not in overridden)]


def _weights(plugins: Plugins, implements: Implements) -> dict[str, int]:
    """The weights of score plugins: those of `score` win over `multiPoint`; a missing or zero weight is 1."""
    weights: dict[str, int] = {}
    total = 0
    both = (*(plugin_set(plugins, "score").enabled or ()), *(plugin_set(plugins, MULTI_POINT).enabled or ()))
    for each in both:
        name = each.name or ""
        if name in weights or not implements(name, "score"):
            continue
        weights[name] = weight = each.weight or 1
        if weight * MAX_SCORE > MAX_TOTAL_SCORE - total:
            raise PluginsError("score plugins: total score of Score plugins could overflow")
        total += weight * MAX_SCORE
    return weights
