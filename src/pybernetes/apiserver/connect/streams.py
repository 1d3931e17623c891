"""exec, attach and portforward: the client's connection is joined with one to the kubelet of the pod's node.

What new clients speak (`v5.channel.k8s.io`, SPDY in WebSocket) is translated here for kubelets that do not declare that
they know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from pybernetes.api.core.connect import Options, PodPortForwardOptions
from pybernetes.api.errors import APIError, BadRequest
from pybernetes.net.http import Request, Response
from pybernetes.net.streams.remotecommand import StreamOptions, translate, wants_translation
from pybernetes.net.streams.spdy_tunnel import pass_tunnel, tunneled
from pybernetes.net.streams.websocket import is_upgrade
from pybernetes.net.upgrade import Target, UpgradeFailed, pass_on

from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..webhooks.client import words
from .kubelets import WEBSOCKETS, Kubelet, kubelets
from .locations import container_of

_PATHS = {"exec": "exec", "attach": "attach", "portforward": "portForward"}


async def stream(registry: Registry, store: ResourceStore, request: Request, options: Options) -> Response | None:
    """Serve exec, attach or portforward. Raises APIError."""
    info = request.info
    pod = store.decode(await store.get(info.namespace, info.name))
    path = f"/{_PATHS[info.subresource]}/{info.namespace}/{info.name}"
    if not isinstance(options, PodPortForwardOptions):
        path += f"/{container_of(pod, getattr(options, 'container', None))}"
    if not pod.spec.node_name:
        raise BadRequest(f"pod {info.name} does not have a host assigned")
    known = kubelets(registry)
    kubelet: Kubelet = await known.find(pod.spec.node_name, info.resource)
    query = urlencode(parameters(options))
    way = known.way()
    target = Target(kubelet.host, kubelet.port, f"{path}?{query}" if query else path, way.tls, within=way.within)
    if not is_upgrade(request):
        raise BadRequest("Upgrade request required")
    try:
        if WEBSOCKETS not in kubelet.features:
            if isinstance(options, PodPortForwardOptions):
                if tunneled(request):
                    return await pass_tunnel(request, target, words)
            elif wants_translation(request):
                return await translate(request, target, _streams(options), words)
        return await pass_on(request, target, words)
    except UpgradeFailed as error:
        raise APIError(str(error)) from None


def _streams(options: Any) -> StreamOptions:
    return StreamOptions(bool(options.stdin), bool(options.stdout), bool(options.stderr), bool(options.tty))


def parameters(options: Any) -> Sequence[tuple[str, str]]:
    """The query that a kubelet is asked with, in the order in which Go writes one: by name."""
    if isinstance(options, PodPortForwardOptions):
        return [("port", ",".join(map(str, options.ports)))] if options.ports else []
    flags = (("error", options.stderr), ("input", options.stdin), ("output", options.stdout), ("tty", options.tty))
    commands = [("command", each) for each in getattr(options, "command", None) or ()]
    return [*commands, *((name, "1") for name, value in flags if value)]
