"""The kubelet as its server sees it. All else (containers, sandboxes, log paths) the server asks the runtime for.

server = KubeletServer(source, runtime, authn=..., authz=..., node="worker-1")
server.add("/metrics", handler)             # more paths: `async (Request) -> Response`, prefix=True for all below
await server.start("0.0.0.0", 10250, tls)   # `tls`: net.tls.ServingTLS
await server.stop()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pybernetes.api.core.v1 import Pod


class Source(Protocol):
    """The kubelet, as its server sees it."""

    def pods(self) -> Iterable[Pod]:
        """All pods of this node: from the API server, the folder and the URL (a static pod, not its mirror)."""
        ...

    def pod(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name; of a static pod the pod itself, found by the name that its mirror has as well."""
        ...

    def status(self, pod: Pod) -> Any:
        """The pod's newest PodStatus that the kubelet knows, which may be ahead of the API server; else pod.status."""
        ...

    def sync_loop_problem(self) -> str:
        """Why the loop over pods is not well; empty if it is."""
        ...

    def failed_tasks(self) -> Mapping[str, str]:
        """Long-lived tasks of the kubelet that keep failing, and why."""
        ...

    def configuration(self) -> dict[str, Any]:
        """The KubeletConfiguration in force, as JSON, for /configz; empty if it is not served."""
        ...
