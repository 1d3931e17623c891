"""Pods keep away from others by node only: a pod that claims a whole zone for itself could keep all others out."""

from __future__ import annotations

from pybernetes.api.core.v1 import Pod

from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

_HOSTNAME = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin):
    """Upstream's LimitPodHardAntiAffinityTopology."""

    name = "LimitPodHardAntiAffinityTopology"
    operations = (CREATE, UPDATE)
    resources = ("pods",)

    def validate(self, attributes: Attributes) -> None:
        pod: Pod = attributes.new
        affinity = pod.spec.affinity if pod.spec is not None else None
        away = affinity.pod_anti_affinity if affinity is not None else None
        for term in (away.required_during_scheduling_ignored_during_execution if away is not None else None) or ():
            if term.topology_key != _HOSTNAME:
                raise forbidden(
                    attributes,
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {term.topology_key or ''} "
                    f"but only key {_HOSTNAME} is allowed",
                )
