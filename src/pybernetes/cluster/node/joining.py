"""The nodes of a cluster that `up` starts: their network before anything runs, their components, their last needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pybernetes.cluster import components
from pybernetes.cluster.addresses import this_machine
from pybernetes.cluster.admin import Admin
from pybernetes.cluster.images import store
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import fabric, objects, plan, prepare
from pybernetes.cluster.node.boot import Boot
from pybernetes.cluster.node.network import Network
from pybernetes.cluster.rootless import machine, namespaces
from pybernetes.cluster.rootless.rights import differences, rights
from pybernetes.cluster.rootless.shared import SharedNetwork


class Nodes:
    """The nodes of one cluster, by name with their numbers. Making it claims their network, unless the cluster runs
    and has one (`network`, an index); `teardown.remove` gives it back.

    Nodes reach the API server at `address`; from this machine it is reached at `outside`.
    """

    def __init__(
        self,
        layout: Layout,
        numbers: Mapping[str, int],
        runtime: str = "containerd",
        network: int | None = None,
        *,
        kind: str = "vxlan",
        ip_family: str = "ipv4",
        verbosity: int = 2,
    ) -> None:
        self.layout = layout
        self.numbers = dict(numbers)
        self.runtime = runtime
        self.kind = kind
        self.dual = ip_family == "dual"
        self.verbosity = verbosity
        plan.check_family(ip_family)
        self.isolation = rights().level
        self.inside = self.isolation == "user-namespaces"
        """Whether they and the control plane are in a network of their own."""
        if self.isolation == "root":
            self.network = plan.claim(layout, dual=self.dual) if network is None else Network(network)
        else:
            self.network = machine.NETWORK if self.inside else SharedNetwork(0, this_machine())
        self.address = self.network.gateway
        self.outside = components.BIND_ADDRESS
        self.supervisor = "supervise-rootless" if self.inside else "supervise"
        self.differences = differences(rights(), namespaces.users())
        """The differences to running with root."""
        self._admin: Admin | None = None

    @property
    def pod_range(self) -> str:
        """Out of which nodes get ranges for their pods; empty if they get none."""
        if self.kind == "none":
            return ""
        return f"{self.network.pods},{self.network.pods6}" if self.dual else self.network.pods

    @property
    def load_balancer_pool(self) -> str:
        """Addresses for Services of type LoadBalancer; empty where no node could announce them."""
        if self.isolation == "none":
            return ""
        network = self.network
        return f"{network.load_balancers},{network.load_balancers6}" if self.dual else network.load_balancers

    @property
    def ingress_addresses(self) -> list[str]:
        """Where Ingresses are served: for programs of this machine, and for its nodes and pods."""
        own = [] if self.inside else [components.BIND_ADDRESS]
        return list(dict.fromkeys([*own, self.network.gateway]))

    def parts(self, port: int) -> list[components.Component]:
        """Their components, whose files are written; the port is that of the API server."""
        self._admin = Admin(self.outside, port, self.layout.pki)
        machines = [
            prepare.prepare(
                self.layout,
                self.network,
                number,
                port,
                self.runtime,
                self.isolation,
                name,
                self.kind,
                dual=self.dual,
                verbosity=self.verbosity,
            )
            for name, number in self.numbers.items()
        ]
        return [
            components.node(
                each.name,
                self.layout.node(each.name) / "machine.json",
                Boot(self.layout, each, self._admin, with_network=self.kind != "cni"),
            )
            for each in machines
        ]

    def provide_images(self) -> None:
        """Make the built-in images of every node; done before a node needs them if it is done when they have been
        started."""
        store.ensure_builtin(self.layout)

    def finish(self) -> str | None:
        """The steps that wait for the API server; returns a message for the user."""
        assert self._admin is not None
        objects.create(self._admin, self.runtime)
        self.annotate()
        self._admin.close()
        return fabric.open_way_out(self.network) if self.isolation == "root" else None

    def annotate(self) -> None:
        """Lets their Nodes say what is not isolated on them."""
        assert self._admin is not None
        if self.differences:
            objects.tell(self._admin, list(self.numbers), self.differences)


def numbers(had: Mapping[str, int], count: int) -> dict[str, int]:
    """So many nodes: those there are, without the last or with new ones (`node-N`) at the first free addresses."""
    kept = dict(sorted(had.items(), key=lambda item: item[1])[:count])
    number = 0
    while len(kept) < count:
        number += 1
        name = prepare.node_name(number)
        if number not in kept.values() and name not in kept:
            kept[name] = number
    return kept


def free_number(taken: Iterable[int]) -> int:
    """The first address that no node has."""
    used = set(taken)
    return next(number for number in range(1, len(used) + 2) if number not in used)
