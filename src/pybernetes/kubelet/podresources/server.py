"""Serves podresources/v1 at `pod-resources/kubelet.sock` in the kubelet's folder, for monitoring agents of the node.

A client that asks more than a hundred times a second is refused, as its answers are made on the kubelet's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import Clock
from pybernetes.client.metrics import Registry

from . import describing
from .describing import Managers

SOCKET: Final = "kubelet.sock"
PER_SECOND: Final = 100.0
BURST: Final = 10.0
SERVICE: Final = "/v1.PodResourcesLister/"
_METRICS: Final = {
    "List": "list",
    "GetAllocatableResources": "get_allocatable",
    "Get": "get",
}


class PodResourcesServer(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The socket, open while `run()` runs."""

    def __init__(
        self, folder: Path, managers: Managers, pods: Callable[[], Iterable[Pod]], clock: Clock, registry: Registry
    ) -> None:
        """`pods`: those that are not terminated."""
        self._folder, self._managers, self._pods, self._clock = folder, managers, pods, clock
        self._tokens, self._filled = BURST, clock.monotonic()
        label = ("server_api_version",)
        what = "pod_resources_endpoint"
        self._total = registry.counter(
            f"kubelet_{what}_requests_total", "[ALPHA] Requests to the pod-resources socket.", label
        )
        self._requests, self._errors = (
            {
                method: registry.counter(
                    f"kubelet_{what}_{kind}_{name}", f"[ALPHA] {kind.title()} of {method} at that socket.", label
                )
                for method, name in _METRICS.items()
            }
            for kind in ("requests", "errors")
        )

    async def run(self) -> None:
        """Listen until cancelled."""
        self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        socket = self._folder / SOCKET
        socket.unlink(missing_ok=True)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers([self])
        server.add_insecure_port(f"unix://{socket.absolute()}")
        await server.start()
        try:
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            await server.stop(None)

    def service(self, details: Any) -> Any:
        """The handler of a call. Messages are read from their file at the first call."""
        for method in describing.proto().methods if details.method.startswith(SERVICE) else ():
            if method.path == details.method:

                async def answer(request: Any, context: Any, name: str = method.name) -> Any:
                    return await self._answer(name, request, context)

                return grpc.unary_unary_rpc_method_handler(
                    answer,
                    request_deserializer=method.request.FromString,
                    response_serializer=method.response.SerializeToString,
                )
        return None

    async def _answer(self, name: str, request: Any, context: Any) -> Any:
        if not self._take_token():
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        self._total.inc("v1")
        self._requests[name].inc("v1")
        try:
            match name:
                case "List":
                    made = [describing.pod_resources(each, self._managers) for each in self._pods()]
                    return describing.proto().names["ListPodResourcesResponse"](pod_resources=made)
                case "GetAllocatableResources":
                    return describing.allocatable(self._managers)
            wanted = (request.pod_namespace, request.pod_name)
            pod = next((each for each in self._pods() if _names(each) == wanted), None)
            if pod is not None:
                made = describing.pod_resources(pod, self._managers)
                return describing.proto().names["GetPodResourcesResponse"](pod_resources=made)
        except Exception:
            self._errors[name].inc("v1")
            raise
        self._errors[name].inc("v1")
        missing = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
        await context.abort(grpc.StatusCode.UNKNOWN, missing)

    def _take_token(self) -> bool:
        now = self._clock.monotonic()
        self._tokens = min(BURST, self._tokens + (now - self._filled) * PER_SECOND)
        self._filled = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def _names(pod: Pod) -> tuple[str, str]:
    meta = pod.metadata
    return (meta.namespace if meta else None) or "", (meta.name if meta else None) or ""
