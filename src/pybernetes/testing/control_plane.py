"""A whole control plane on one event loop: API server, controllers, scheduler and simulated nodes.

The components are those of `pyb up`, with a memory store. They talk HTTP over the memory network; clients of the test
come over TLS to a port that is opened in each fork. Each component has a user and a token of its own, so that
authorization is what it is in every cluster.
"""

from __future__ import annotations

import asyncio
import csv
import secrets
import socket
from collections.abc import Callable
from contextvars import Context
from functools import partial
from pathlib import Path

from pybernetes.apiserver.options import parse as parse_server
from pybernetes.apiserver.server import APIServer
from pybernetes.apiserver.traces import Traces
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.component import Worker
from pybernetes.client.config import Config
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.cluster import components
from pybernetes.cluster.layout import Layout
from pybernetes.component.tasks import Tasks
from pybernetes.controllers.base import ControllerContext
from pybernetes.controllers.identity import Identities
from pybernetes.controllers.manager import Manager, choose
from pybernetes.controllers.options import parse as parse_controllers
from pybernetes.kubelet.simulated.behaviour import Rules
from pybernetes.kubelet.simulated.command import Worker as SimulatedNodes
from pybernetes.kubelet.simulated.options import Options as NodeOptions
from pybernetes.kubelet.simulated.rules_file import RulesFile
from pybernetes.net import acceptor
from pybernetes.net.acceptor import securely
from pybernetes.net.http import Timeouts
from pybernetes.net.tcp import confirmed
from pybernetes.net.tls import ServingTLS
from pybernetes.scheduler.config import load as scheduler_config
from pybernetes.scheduler.config.spec import build
from pybernetes.scheduler.explain.memory import Memory
from pybernetes.scheduler.metrics import Metrics
from pybernetes.scheduler.scheduler import Scheduler
from pybernetes.store.base import Store
from pybernetes.testing.loop import ClusterLoop
from pybernetes.testing.options import ClusterOptions
from pybernetes.trace import recorder

HOST, PORT = "127.0.0.1", 6443
"""Where the components find the API server, in the memory network."""
ADMIN = "kubernetes-admin"
USERS = {
    ADMIN: "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}
CONTROLLER_MANAGER, SCHEDULER, NODES = "kube-controller-manager", "kube-scheduler", "simulated-nodes"
_USER_OF = {CONTROLLER_MANAGER: f"system:{CONTROLLER_MANAGER}", SCHEDULER: f"system:{SCHEDULER}", NODES: ADMIN}
UNLIMITED = (1e9, 100)
STARTED_WITHIN = 60.0
SPANS_SIZE = 4 << 20  # bytes; some 12,000 spans
FOREVER = 1e9
PATIENT = Timeouts(header=FOREVER, request=FOREVER, idle=FOREVER, answer=FOREVER, write=FOREVER)
"""Time may jump by days while a client makes a connection or sends a request: it is not slow by that."""


class _Server(APIServer):
    """An API server that listens in the memory network, and in a fork on a port of the machine."""

    def __init__(self, flags: list[str], before: _Server | None = None, store: Store | None = None) -> None:
        """`before`: whose store and spans it takes over; new ones without it. `store`: one that is filled already."""
        self._left = before.store if before else store
        self.traces: Traces = before.traces if before else Traces(None, size=SPANS_SIZE)
        super().__init__(parse_server(flags), PATIENT)

    def _open_store(self) -> Store:
        return self._left or super()._open_store()

    def _open_traces(self) -> Traces:
        return self.traces

    async def _listen(self, tls: ServingTLS) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ClusterLoop)
        self._tls, self._servers = tls, []
        loop.network.listen(HOST, PORT, self._http)
        return PORT

    async def open(self, listener: socket.socket) -> None:
        """Serve clients of the machine, too."""
        acceptor.HANDSHAKE = FOREVER
        loop = asyncio.get_running_loop()
        self._servers = [await loop.create_server(securely(self._http, self._tls), sock=listener)]

    def sent(self) -> int:
        """How many bytes clients of the machine have been sent on the connections that they have."""
        return sum(confirmed(each.transport) for each in self._http.connections)

    async def crash(self) -> None:
        """End wherever it is; the store stays as it is."""
        asyncio_loop = asyncio.get_running_loop()
        assert isinstance(asyncio_loop, ClusterLoop)
        asyncio_loop.network.close(HOST, PORT)
        for server in self._servers:
            server.close()
        self._servers = []
        for each in list(self._http.connections):
            each.transport.abort()
        await self._tasks.stop()
        for plugin in self.registry.admission.plugins:
            await plugin.stop()
        await self.cache.close()

    async def close_clients(self) -> None:
        """Stop listening and drop all connections but those of the memory network."""
        for server in self._servers:
            server.close()
        self._servers = []
        while clients := [each for each in self._http.connections if each.transport.get_extra_info("socket")]:
            for each in clients:
                each.transport.abort()
            await asyncio.sleep(0)


class ControlPlane:
    """The components of one cluster, from `start` to the end of the process."""

    def __init__(self, options: ClusterOptions, pki: Path, folder: Path, store: Store | None = None) -> None:
        """`folder` is for the cluster's own files; `store` has what is there in the beginning."""
        self._options = options
        self._store = store
        self._layout = Layout("test", pki.parent)
        self._folder = folder
        self._tokens = {user: secrets.token_hex(16) for user in USERS}
        self._clock = SystemClock()
        self._listener: socket.socket | None = None
        self.components: dict[str, Component] = {}
        """The components that can crash and start again, by name."""

    async def start(self) -> None:
        """Start everything, and return when the cluster is ready and at rest. TimeoutError, ValueError, OSError."""
        argv = components.api_server(
            self._layout, HOST, PORT, HOST, "memory://", self._write_tokens(), self._options.api_server_flags
        ).argv
        self._flags = [*argv[argv.index("apiserver") + 1 :], *_gates(self._options)]
        self.server = _Server(self._flags, store=self._store)
        makers: dict[str, Callable[[Client], Worker]] = {
            CONTROLLER_MANAGER: self._controllers,
            SCHEDULER: self._scheduler,
        }
        if self._options.nodes:
            makers[NODES] = self._nodes
        async with asyncio.timeout(STARTED_WITHIN):
            await self.server.start()
            self.server._watchdog.stop()  # a timer twice a second, where time may jump by hours
            for name, make in makers.items():
                self.components[name] = Component(name, make, partial(self.client, _USER_OF[name], name))
                self.components[name].start()
            for each in self.components.values():
                await each.wait()
            loop = asyncio.get_running_loop()
            assert isinstance(loop, ClusterLoop)
            loop.count_sent(self.server.sent)
            await loop.settle()

    async def open(self, listener: socket.socket) -> None:
        """Accept connections of clients at a socket that listens."""
        self._listener = listener
        await self.server.open(listener.dup())

    async def restart_server(self, down: float = 0.0) -> None:
        """Let the API server crash, and start another one on the same store after so many seconds."""
        before = self.server
        await before.crash()
        if down:
            await asyncio.sleep(down)
        self.server = _Server(self._flags, before)
        await self.server.start()
        self.server._watchdog.stop()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ClusterLoop)
        loop.count_sent(self.server.sent)
        if self._listener is not None:
            await self.server.open(self._listener.dup())

    async def close(self) -> None:
        """Accept no connections, and drop those of clients."""
        await self.server.close_clients()

    def client(self, user: str, program: str) -> Client:
        """A client of one of the cluster's own users."""
        config = Config(server=f"http://{HOST}:{PORT}", token=self._tokens[user])
        return Client(config, program=program, clock=self._clock)

    def token(self, user: str) -> str:
        """The bearer token of one of the cluster's own users."""
        return self._tokens[user]

    def _write_tokens(self) -> str:
        """A file with the tokens of the cluster's own users, in upstream's format."""
        path = self._folder / "tokens.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([self._tokens[user], user, user, group] for user, group in USERS.items())
        return str(path)

    def _controllers(self, client: Client) -> Worker:
        argv = components.controller_manager(self._layout, f"http://{HOST}:{PORT}", 0, components.POD_RANGE).argv
        flags = [*argv[argv.index("controller-manager") + 1 :], *self._options.controller_manager_flags]
        options = parse_controllers(flags)
        context = ControllerContext(
            client=client,
            informers=InformerFactory(client.for_component("shared-informers"), clock=self._clock),
            events=EventBroadcaster(client.for_component("events"), self._clock),
            clock=self._clock,
            options=options,
            identities=Identities(client),
        )
        return Manager(context, choose(options.controllers))

    def _scheduler(self, client: Client) -> Worker:
        file = self._options.scheduler_config
        config = scheduler_config.load(Path(file).read_bytes()) if file else scheduler_config.default()
        return Scheduler(
            client.for_component("scheduler"),
            InformerFactory(client.for_component("informers"), clock=self._clock),
            build(config),
            self._clock,
            metrics=Metrics(),
            recorder=Memory(),
            telling=UNLIMITED,
        )

    def _nodes(self, client: Client) -> Worker:
        file = RulesFile(Path(self._options.simulation_rules)) if self._options.simulation_rules else None
        options = NodeOptions(nodes=self._options.nodes, name_prefix="node-")
        return SimulatedNodes(options, file, file.read() if file else Rules(), client)


def _gates(options: ClusterOptions) -> list[str]:
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(options.features.items()))
    return [f"--feature-gates={gates}"] if gates else []


class Component:
    """A component that can crash and be started again. Invariant: `_task` is set exactly while it should be running."""

    def __init__(self, name: str, make: Callable[[Client], Worker], client: Callable[[], Client]) -> None:
        """`make` makes it anew for a client."""
        self.name = name
        self._make, self._new_client = make, client
        self._task: asyncio.Task[None] | None = None
        self._client: Client

    def start(self) -> None:
        """Start it, with nothing but what is in the API server."""
        Context().run(self._start)  # nothing that it does is caused by who starts it

    def _start(self) -> None:
        recorder.SERVICE.set(self.name)
        self._client = self._new_client()
        self._worker = self._make(self._client)
        self._tasks = Tasks("test-cluster")
        self._task = self._tasks.start(self.name, self._worker.run, restart=False)

    @property
    def running(self) -> bool:
        """Whether it was started and has not crashed since."""
        return self._task is not None

    async def wait(self) -> None:
        """Return when it works."""
        await self._worker.started.wait()

    async def crash(self) -> None:
        """End it wherever it is. Its connections end first: it sends nothing more."""
        if self._task is None:
            return
        self._task = None
        await self._client.transport.close()
        await self._tasks.stop()
