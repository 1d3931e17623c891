"""The servers of all simulated kubelets in one process: each node has its own port.

All are at one address of this machine, which may not be that of its loopback device if `nodes/NAME/proxy` is to work:
an API server does not proxy to that. Each node's server is the kubelet's own (`kubelet.server`), made when a client
first comes to it; what differs is where its figures and its containers' answers come from.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.net.http import HTTPServer, Request, Response

from ..runtime.types import ObservedPod
from .pod import SimulatedPod

if TYPE_CHECKING:
    from pybernetes.cri.remote import Runtime
    from pybernetes.net.client_certificates import Trust

    from ..server.server import Call, KubeletServer
    from ..stats.summary import Json
    from .agent import Agent
    from .nodes import SimulatedNodes

MAX_BODY: Final = 1 << 20
BACKLOG: Final = 16
LAST_PORT: Final = 65535
SOME_FILES: Final = 256
"""Files that the process has open anyway."""
_GRACE: Final = 1.0


class Kubelets:
    """All servers. `attach` sets the nodes; until then connections are refused."""

    def __init__(self, client: Client, clock: Clock, trust: Trust | None) -> None:
        """`client` asks who may; `trust` are the authorities of client certificates."""
        self._client = client
        self._clock = clock
        self._trust = trust
        self._agent: Agent | None = None
        self._nodes: SimulatedNodes | None = None
        self._names: dict[int, str] = {}
        """Nodes by port."""
        self._made: dict[str, KubeletServer] = {}
        self._started_at = clock.now()
        self._http: HTTPServer | None = None
        self._servers: list[asyncio.Server] = []

    async def start(
        self, address: str, first_port: int, nodes: Sequence[str], certificate: Path, key: Path
    ) -> dict[str, int]:
        """Listen for each node: at the ports from the first one on, elsewhere if one is taken. The ports by node."""
        from pybernetes.net.tls import ServingTLS

        tls = ServingTLS(certificate, key, [self._trust] if self._trust else [])
        self._http = HTTPServer(self, _malformed, max_body=MAX_BODY, audited=False)
        loop = asyncio.get_running_loop()
        _allow_files(2 * len(nodes) + SOME_FILES)
        for number, name in enumerate(nodes):
            wanted = first_port + number if first_port else 0
            listener = _listener(address, wanted if wanted <= LAST_PORT else 0)
            self._servers.append(await loop.create_server(self._http, sock=listener, ssl=tls.context, backlog=BACKLOG))
            self._names[int(listener.getsockname()[1])] = name
        return {name: port for port, name in self._names.items()}

    def attach(self, agent: Agent, nodes: SimulatedNodes) -> None:
        """Answer for these."""
        self._agent, self._nodes = agent, nodes

    async def stop(self) -> None:
        """Listen no more, and end what is under way."""
        for server in self._servers:
            server.close()
        if self._http is not None:
            await self._http.drain(_GRACE)

    async def __call__(self, request: Request) -> Response | None:
        """Answer a request, as the node whose port it came to."""
        node = self._names[request.connection.transport.get_extra_info("sockname")[1]]
        if self._nodes is None or self._nodes.silent(node):
            raise ConnectionResetError("the node does not answer")
        server = self._made.get(node)
        if server is None:
            server = self._made[node] = self._make(node)
        return await server(request)

    def _make(self, node: str) -> KubeletServer:
        assert self._agent is not None
        assert self._nodes is not None
        has = self._nodes.quantities
        kubelet = SimulatedKubelet(
            node, self._agent, self._clock, self._started_at, has["cpu"].value(), has["memory"].value()
        )
        return kubelet_server(kubelet, node, self._client, self._clock, self._trust)


class SimulatedKubelet:
    """A node's kubelet, as its server sees it (`server.source.Source`, `server.statistics.Statistics`)."""

    def __init__(self, node: str, pods: Agent, clock: Clock, started_at: float, cpus: int, memory: int) -> None:
        self._node = node
        self._pods = pods
        self._clock = clock
        self._started_at = started_at
        self._cpus, self._memory = cpus, memory

    def pods(self) -> Iterable[Pod]:
        """All pods of this node."""
        return [pod for pod, _ in self._pods.pods_on(self._node)]

    def pod(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name."""
        for pod, _ in self._pods.pods_on(self._node):
            if pod.metadata and pod.metadata.name == name and pod.metadata.namespace == namespace:
                return pod
        return None

    def simulated(self, pod: Pod) -> SimulatedPod | None:
        """The simulated pod with this pod's UID; None if there is none."""
        uid = pod.metadata.uid if pod.metadata else None
        return next((each for _, each in self._pods.pods_on(self._node) if each.observed.uid == uid), None)

    def observed(self) -> list[ObservedPod]:
        """The simulated pods of the node, as its runtime would list them."""
        return [simulated.observed for _, simulated in self._pods.pods_on(self._node)]

    def status(self, pod: Pod) -> PodStatus:
        """The newest status."""
        return self._pods.status_of(pod)

    def failed_tasks(self) -> Mapping[str, str]:
        """None: there is no kubelet."""
        return {}

    def sync_loop_problem(self) -> str:
        """There is never one."""
        return ""

    def configuration(self) -> dict[str, Any]:
        """The KubeletConfiguration that such a node would have: all defaults."""
        import msgspec

        from ..config.load import GROUP_VERSION, KIND, set_defaults
        from ..config.types import KubeletConfiguration

        config = KubeletConfiguration()
        set_defaults(config)
        found: dict[str, Any] = msgspec.to_builtins(config)
        return {**found, "kind": KIND, "apiVersion": GROUP_VERSION}

    async def summary(self, only_cpu_and_memory: bool = False) -> Json:
        """The document of /stats/summary. Of disks and networks there is nothing to tell."""
        from ..stats.summary import Facts, summary
        from .stats import interfaces

        sample = self._sample()
        facts = Facts(self._node, self._started_at, self._memory)
        if not only_cpu_and_memory:
            facts.pod_networks = interfaces(sample)
        return summary(sample, facts, only_cpu_and_memory=only_cpu_and_memory)

    async def log_metrics(self) -> bytes:
        """Nothing: simulated pods have no logs on disk."""
        return b""

    def resource_metrics(self) -> bytes:
        """The text of /metrics/resource."""
        from ..stats.resource import resource_metrics

        return resource_metrics(self._sample())

    def cadvisor_metrics(self) -> bytes:
        """The text of /metrics/cadvisor."""
        from ..stats.cadvisor import cadvisor_metrics
        from .stats import interfaces

        sample = self._sample()
        return cadvisor_metrics(sample, interfaces(sample), cores=self._cpus, memory=self._memory)

    def _sample(self) -> Any:
        from .stats import node_sample

        return node_sample(self._pods.pods_on(self._node), self._started_at, self._clock.now())

    async def running_pods(self, call: Call) -> Response:
        """/runningpods: pods as far as their running containers tell of them."""
        from pybernetes.api.core.v1 import Container, PodSpec
        from pybernetes.api.meta.v1 import ObjectMeta

        from ..server.pods import pod_list

        found = []
        for _, simulated in self._pods.pods_on(self._node):
            running = simulated.observed.running()
            if running:
                ref = simulated.observed.ref
                containers = [Container(name=each.name, image=each.image) for each in running]
                metadata = ObjectMeta(name=ref.name, namespace=ref.namespace, uid=ref.uid)
                found.append(Pod(metadata=metadata, spec=PodSpec(containers=containers)))
        return pod_list(found)


def kubelet_server(
    kubelet: SimulatedKubelet, node: str, client: Client, clock: Clock, trust: Trust | None
) -> KubeletServer:
    """The server of one node's kubelet; who may ask is judged as every kubelet does it."""
    from pybernetes.client.metrics import Registry

    from ..metrics.kubelet import KubeletMetrics
    from ..server.authn import Authenticator
    from ..server.authz import WebhookAuthorizer
    from ..server.server import KubeletServer
    from ..server.statistics import add_statistics
    from ..server.zpages import add_zpages
    from .connecting import Connecting

    metrics = KubeletMetrics(node, observed=kubelet.observed, pods=kubelet.pods)
    server = KubeletServer(
        kubelet,
        cast("Runtime", None),  # whatever would ask it is replaced below
        authn=Authenticator(client, trust),
        authz=WebhookAuthorizer(client, node),
        system_logs="",
        metrics=metrics.registry,
    )
    connecting = Connecting(kubelet.simulated, clock)
    server.replace("containerLogs", connecting.logs)
    server.replace("exec", connecting.execute)
    server.replace("attach", connecting.attach)
    server.replace("portForward", connecting.port_forward)
    server.replace("run", connecting.run)
    server.replace("runningpods", kubelet.running_pods)
    add_statistics(server, kubelet, metrics.registry, Registry())
    add_zpages(server, None)
    return server


def _listener(address: str, port: int) -> socket.socket:
    """A socket at the port, or at any other if that is taken. Raises OSError."""
    for each in (port, 0):
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, each))
            return listener
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE or not each:
                raise
    raise AssertionError("any free port was tried")


def _allow_files(count: int) -> None:
    """Let this process open so many files, if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _malformed(status: int, message: str) -> Response:
    return Response(f"{message}\n".encode(), status, "text/plain; charset=utf-8", [])
