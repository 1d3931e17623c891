"""The nodes of a cluster that `up` starts: their network before anything runs, their components, their last needs."""

from __future__ import annotations

from pybernetes.cluster import components
from pybernetes.cluster.addresses import this_machine
from pybernetes.cluster.admin import Admin
from pybernetes.cluster.images import store
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import fabric, objects, plan, prepare
from pybernetes.cluster.node.boot import Boot
from pybernetes.cluster.rootless import machine, namespaces
from pybernetes.cluster.rootless.rights import differences, rights
from pybernetes.cluster.rootless.shared import SharedNetwork


class Nodes:
    """The nodes of one cluster. Making it claims their network; `teardown.remove` gives it back.

    The API server listens at `address` for them, and is reached from this machine at `outside`.
    """

    def __init__(self, layout: Layout, count: int, runtime: str = "containerd") -> None:
        self.layout = layout
        self.count = count
        self.runtime = runtime
        self.isolation = rights().level
        inside = self.isolation == "user-namespaces"
        if self.isolation == "root":
            self.network = plan.claim(layout)
        else:
            self.network = machine.NETWORK if inside else SharedNetwork(0, this_machine())
        self.address = self.network.gateway
        self.outside = components.BIND_ADDRESS if inside else self.address
        self.supervisor = "supervise-rootless" if inside else "supervise"
        self.differences = differences(rights(), namespaces.users())
        """What is not as it would be with root."""
        self._admin: Admin | None = None

    def parts(self, port: int) -> list[components.Component]:
        """Their components, whose files are written; the port is that of the API server."""
        self._admin = Admin(self.outside, port, self.layout.pki)
        machines = [
            prepare.prepare(self.layout, self.network, number + 1, port, self.runtime, self.isolation)
            for number in range(self.count)
        ]
        return [
            components.node(
                each.name, self.layout.node(each.name) / "machine.json", Boot(self.layout, each, self._admin)
            )
            for each in machines
        ]

    def provide_images(self) -> None:
        """What every node has of images; there before a node needs them if it is done when they have been started."""
        store.ensure_builtin(self.layout)

    def finish(self) -> str | None:
        """What can wait until the API server is there; answers what the user should know."""
        assert self._admin is not None
        objects.create(self._admin, self.runtime)
        if self.differences:
            names = [prepare.node_name(number + 1) for number in range(self.count)]
            objects.tell(self._admin, names, self.differences)
        self._admin.close()
        return fabric.open_way_out(self.network) if self.isolation == "root" else None
