"""How the resources of networking.k8s.io differ."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.addresses import warnings_for_cidr
from pybernetes.api.core.validation.capabilities import CAPABILITIES
from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import Path
from pybernetes.api.networking.v1 import (
    IngressLoadBalancerStatus,
    IngressStatus,
    NetworkPolicy,
    NetworkPolicySpec,
    ServiceCIDRStatus,
)
from pybernetes.api.networking.validation.ingress import CLASS_ANNOTATION
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .metadata import keep_metadata

NOT_ENFORCED: Final = "the network of this cluster does not enforce NetworkPolicies: this one has no effect"


class _Versioned(Strategy):
    """A changed spec is a new generation."""

    has_generation = True

    def changed(self, new: Any, old: Any) -> bool:
        return not semantically_equal(new.spec, old.spec)


class IngressStrategy(_Versioned):
    """The class was an annotation once."""

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = IngressStatus(load_balancer=IngressLoadBalancerStatus())

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        annotations = obj.metadata.annotations or {}
        if CLASS_ANNOTATION in annotations and obj.spec.ingress_class_name is None:
            return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        return []


class NetworkPolicyStrategy(_Versioned):
    """Blocks that are written in an unusual way are worth a warning."""

    def changed(self, new: NetworkPolicy, old: NetworkPolicy) -> bool:
        return new.spec != old.spec  # an empty list is something else than none here

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        return [*([] if CAPABILITIES.enforces_network_policy else [NOT_ENFORCED]), *network_policy_warnings(obj)]


def network_policy_warnings(policy: NetworkPolicy) -> list[str]:
    """Blocks with host bits or leading zeros."""
    spec = policy.spec or NetworkPolicySpec()
    peers = [
        (Path("spec", "ingress").index(index).child("from").index(position), peer)
        for index, ingress in enumerate(spec.ingress or ())
        for position, peer in enumerate(ingress.from_ or ())
    ]
    peers += [
        (Path("spec", "egress").index(index).child("to").index(position), peer)
        for index, egress in enumerate(spec.egress or ())
        for position, peer in enumerate(egress.to or ())
    ]
    warnings: list[str] = []
    for path, peer in peers:
        if peer.ip_block is not None:
            path = path.child("ipBlock")
            warnings += warnings_for_cidr(path.child("cidr"), peer.ip_block.cidr or "")
            for index, cidr in enumerate(peer.ip_block.except_ or ()):
                warnings += warnings_for_cidr(path.child("except").index(index), cidr)
    return warnings


class IPAddressStrategy(Strategy):
    """The name is the address: nothing can be put behind its beginning."""

    def generate_name(self, base: str) -> str:
        return base


class ServiceCIDRStrategy(Strategy):
    """The status subresource changes nothing but the status, not even labels."""

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        obj.status = ServiceCIDRStatus()

    def prepare_for_status_update(self, new: Any, old: Any, context: Context) -> None:
        new.spec = old.spec
        keep_metadata(new, old)


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "ingressclasses": _Versioned,
    "ingresses": IngressStrategy,
    "ipaddresses": IPAddressStrategy,
    "networkpolicies": NetworkPolicyStrategy,
    "servicecidrs": ServiceCIDRStrategy,
}
