"""/stats/summary and the four paths of metrics: what is measured, as text for Prometheus or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from urllib.parse import parse_qs

import msgspec

from pybernetes.client.metrics import Registry
from pybernetes.net.http import Request, Response

from ..stats.summary import Json
from .answers import Refused, json
from .server import PROMETHEUS, Handler, KubeletServer

_TRUE = ("1", "t", "T", "true", "TRUE", "True")


class Statistics(Protocol):
    """Resource usage of a node, its pods and containers (`stats.provider.StatsProvider`)."""

    async def summary(self, only_cpu_and_memory: bool = False) -> Json:
        """The document of /stats/summary."""
        ...

    async def log_metrics(self) -> bytes:
        """The metrics of logs for /metrics; measures volumes too."""
        ...

    def resource_metrics(self) -> bytes:
        """The text of /metrics/resource."""
        ...

    def cadvisor_metrics(self) -> bytes:
        """The text of /metrics/cadvisor."""
        ...


def add_statistics(server: KubeletServer, stats: Statistics, metrics: Registry, probes: Registry) -> None:
    """Serve the statistics; `metrics` are the kubelet's own, `probes` the probe manager's."""

    async def summary(request: Request) -> Response:
        if request.method not in ("GET", "POST"):
            raise Refused(405, "405: Method Not Allowed", [("Allow", "GET, POST")])
        query = parse_qs(request.query_string)
        short = query.get("only_cpu_and_memory", [""])[0] in _TRUE
        return json(msgspec.json.encode(await stats.summary(short)))

    async def own(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "405: Method Not Allowed", [("Allow", "GET, HEAD")])
        logs = await stats.log_metrics()
        return Response(metrics.render() + logs, 200, PROMETHEUS, [])

    server.add("/stats/summary", summary)
    server.add("/metrics", own)
    server.add("/metrics/probes", _text(probes.render))
    server.add("/metrics/resource", _text(stats.resource_metrics))
    server.add("/metrics/cadvisor", _text(stats.cadvisor_metrics))


def _text(render: Callable[[], bytes]) -> Handler:
    async def answer(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "405: Method Not Allowed", [("Allow", "GET, HEAD")])
        return Response(render(), 200, PROMETHEUS, [])

    return answer
