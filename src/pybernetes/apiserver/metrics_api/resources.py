"""metrics.k8s.io: what nodes and pods use, fetched from their kubelets at each request. Nothing is collected before.

With upstream a metrics server stands behind an APIService and collects every 15 seconds; here a kubelet knows its
rates itself, so one question to the nodes concerned is enough. Served if --runtime-config has
metrics.k8s.io/v1beta1=true, and only until an APIService names another server for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.errors import APIError, NotFound
from pybernetes.api.gocompat import goencoder
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response
from pybernetes.net.streams.duplex import request_head

from ..negotiation import output_format
from ..partial_metadata import ListMeta
from ..pipeline.options import list_options
from ..pipeline.respond import TRANSFORMS, answer, answer_list
from ..registry.lister import lister
from ..registry.registry import Registry
from .usage import node_metrics, pod_metrics

GROUP: Final = "metrics.k8s.io"
API_VERSION: Final = f"{GROUP}/v1beta1"
PATH: Final = "/stats/summary?only_cpu_and_memory=true"
WITHIN: Final = 10.0
"""Seconds that a kubelet has to answer: a metrics server's."""
AT_ONCE: Final = 64
"""Kubelets that are asked side by side, so that the answers of a thousand do not have to share those seconds."""
log = logging.getLogger(__name__)


async def nodes(registry: Registry, resource: Resource, request: Request) -> Response:
    """The metrics of one node, or of all that are selected and answer."""
    found: list[Node] = _selected(registry, request, "nodes")
    now = registry.clock.now()
    summaries = await _summaries(registry, found)
    metrics = [node_metrics(each, summaries.get(_name(each), {}), now) for each in found]
    return _answer(request, resource, [each for each in metrics if each is not None])


async def pods(registry: Registry, resource: Resource, request: Request) -> Response:
    """The metrics of one pod, or of all that are selected and known to their kubelets."""
    found: list[Pod] = [
        each
        for each in _selected(registry, request, "pods")
        if each.spec and each.spec.node_name and not (each.status and each.status.phase in ("Succeeded", "Failed"))
    ]
    names = {each.spec.node_name for each in found if each.spec}
    hosts = [each for each in lister(registry, "", "v1", "nodes").list() if _name(each) in names]
    now = registry.clock.now()
    summaries = await _summaries(registry, hosts)
    metrics = [pod_metrics(each, summaries.get(each.spec.node_name or "", {}), now) for each in found if each.spec]
    return _answer(request, resource, [each for each in metrics if each is not None])


def _selected(registry: Registry, request: Request, plural: str) -> list[Any]:
    """The objects that a request is about."""
    info = request.info
    objects = lister(registry, "", "v1", plural)
    if info.verb == "get":
        one = objects.get(info.namespace, info.name)
        return [] if one is None else [one]
    store = registry.store("", "v1", plural)
    options = list_options(store, info.query)
    if not options.selects:
        return objects.list(info.namespace)
    chosen = []
    for each in objects.list(info.namespace):
        item = store.peek(each.metadata.namespace or "", each.metadata.name)
        if item is not None and options.matches(store.attributes(item)):
            chosen.append(each)
    return chosen


async def _summaries(registry: Registry, hosts: Iterable[Node]) -> dict[str, Any]:
    """The metrics of these nodes' kubelets, by node; those that do not answer are left out."""

    turn = asyncio.Semaphore(AT_ONCE)

    async def ask(node: Node) -> tuple[str, Any]:
        try:
            async with turn, asyncio.timeout(WITHIN):
                return _name(node), msgspec.json.decode(await _get(registry, _name(node)))
        except (APIError, OSError, TimeoutError, msgspec.DecodeError) as error:
            log.warning("no metrics of node %s: %s", _name(node), error or type(error).__name__)
            return _name(node), None

    answers = await asyncio.gather(*map(ask, hosts))
    return {name: found for name, found in answers if found is not None}


async def _get(registry: Registry, node: str) -> bytes:
    """The metrics of a node's kubelet. Raises APIError or OSError."""
    from ..connect.kubelets import kubelets

    known = kubelets(registry)
    kubelet = await known.find(node)
    address, transport = (kubelet.host, kubelet.port), known.way().transport
    authority = f"[{kubelet.host}]" if ":" in kubelet.host else kubelet.host
    head = request_head("GET", PATH, [("Host", f"{authority}:{kubelet.port}"), ("User-Agent", "kube-apiserver")])
    backend = await transport.request(address, head, repeatable=True)
    try:
        pieces = []
        while piece := await backend.read():
            pieces.append(piece)
    except BaseException:
        transport.abort(backend)
        raise
    transport.release(address, backend)
    if backend.status != 200:
        raise APIError(f"the kubelet answered {backend.status}: {b''.join(pieces)[:200].decode(errors='replace')}")
    return b"".join(pieces)


def _answer(request: Request, resource: Resource, found: list[Any]) -> Response:
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    raws = [_raw(each) for each in found]
    if info.verb == "list":
        return answer_list(request, resource, raws, ListMeta(), form)
    if not raws:
        raise NotFound(GROUP, resource.kind.lower(), f"{info.namespace}/{info.name}".lstrip("/"))
    return answer(request, resource, raws[0], form)


def _raw(metrics: Kind) -> bytes:
    return goencoder.encode(msgspec.structs.replace(metrics, kind=type(metrics).__name__, api_version=API_VERSION))


def _name(obj: Kind) -> str:
    return (obj.metadata.name if obj.metadata else None) or ""
