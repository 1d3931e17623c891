"""Services against a quota: their number, node ports and load balancers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..core.v1.service import Service, ServiceSpec
from ..quantity import Quantity
from .evaluator import Evaluator, Operation
from .lists import ONE, ZERO, Resources

_NAMES: Final = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})


class ServiceEvaluator(Evaluator):
    """Services."""

    group, plural = "", "services"

    def matching_resources(self, names: Iterable[str]) -> list[str]:
        """Their number, node ports and load balancers."""
        return sorted(_NAMES.intersection(names))

    def usage(self, obj: Service, now: float) -> Resources:
        """A load balancer has node ports too, unless `allocateLoadBalancerNodePorts` is false; then those set count."""
        spec = obj.spec or ServiceSpec()
        ports = spec.ports or []
        node_ports, balancers = 0, ZERO
        if spec.type == "NodePort":
            node_ports = len(ports)
        elif spec.type == "LoadBalancer":
            balancers = ONE
            allocates = spec.allocate_load_balancer_node_ports is not False
            node_ports = len(ports) if allocates else sum(1 for each in ports if each.node_port)
        return {
            "count/services": ONE,
            "services": ONE,
            "services.nodeports": Quantity(node_ports),
            "services.loadbalancers": balancers,
        }

    def handles(self, operation: Operation, subresource: str, old: Any, new: Any) -> bool:
        """A change of type or ports counts too."""
        return not subresource and operation in ("CREATE", "UPDATE")

    def changes_usage(self, old: Service, new: Service, now: float) -> bool:
        """Whether it became, or is no longer, of a type with ports or a balancer."""
        return _type(old) != _type(new)


def _type(service: Service) -> str:
    kind = service.spec.type if service.spec else None
    return kind if kind in ("NodePort", "LoadBalancer") else ""
