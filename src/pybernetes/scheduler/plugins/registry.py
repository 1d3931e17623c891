"""Which plugin is where. Modules are imported when a profile names them; others' plugins come by entry points."""

from __future__ import annotations

from importlib import import_module

from ..framework.plugin import Plugin

PLUGINS: dict[str, str] = {
    "SchedulingGates": "scheduling_gates:SchedulingGates",
    "PrioritySort": "priority_sort:PrioritySort",
    "NodeUnschedulable": "node_unschedulable:NodeUnschedulable",
    "NodeName": "node_name:NodeName",
    "TaintToleration": "taint_toleration:TaintToleration",
    "NodeAffinity": "node_affinity:NodeAffinity",
    "NodePorts": "node_ports:NodePorts",
    "NodeResourcesFit": "node_resources_fit:NodeResourcesFit",
    "VolumeRestrictions": "volume_restrictions:VolumeRestrictions",
    "NodeVolumeLimits": "node_volume_limits:NodeVolumeLimits",
    "VolumeBinding": "volume_binding:VolumeBinding",
    "VolumeZone": "volume_zone:VolumeZone",
    "PodTopologySpread": "pod_topology_spread:PodTopologySpread",
    "InterPodAffinity": "inter_pod_affinity:InterPodAffinity",
    "DynamicResources": "dynamic_resources:DynamicResources",
    "DefaultPreemption": "default_preemption:DefaultPreemption",
    "NodeResourcesBalancedAllocation": "node_resources_balanced_allocation:NodeResourcesBalancedAllocation",
    "ImageLocality": "image_locality:ImageLocality",
    "DefaultBinder": "default_binder:DefaultBinder",
    "NodeDeclaredFeatures": "node_declared_features:NodeDeclaredFeatures",
}
"""Name -> `module:Class`, the module below this package (a module or a package of that name)."""

ENTRY_POINTS = "pybernetes.scheduler.plugins"


def load(name: str) -> type[Plugin]:
    """The class of a plugin; `LookupError` if the name is unknown."""
    where = PLUGINS.get(name)
    if where is not None:
        module, _, cls = where.partition(":")
        found: type[Plugin] = getattr(import_module(f"{__package__}.{module}"), cls)
        return found
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        loaded: type[Plugin] = entry.load()
        return loaded
    raise LookupError(f"plugin {name!r} does not exist")
