"""/pods: what should run here, as the API has it. /runningpods: what the runtime runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from pybernetes.api.core.v1 import Container, Pod, PodSpec
from pybernetes.api.gocompat import goencoder
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import copy
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.net.http import Response

from ..runtime import labels
from .answers import Refused, json

if TYPE_CHECKING:
    from .server import Call


async def pods(call: Call) -> Response:
    """All pods of the node, with their newest status."""
    found = []
    for each in call.source.pods():
        pod = copy(each)
        pod.status = call.source.status(each)
        found.append(pod)
    return pod_list(found)


async def running_pods(call: Call) -> Response:
    """Pods as far as their running containers tell of them."""
    state = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
    try:
        answer = await call.runtime.list_containers(cri.ListContainersRequest(filter=cri.ContainerFilter(state=state)))
    except CRIError as error:
        raise Refused(500, str(error)) from None
    found: dict[str, Pod] = {}
    for each in answer.containers:
        uid = each.labels.get(labels.POD_UID)
        if not uid:
            continue
        name, namespace = each.labels.get(labels.POD_NAME), each.labels.get(labels.POD_NAMESPACE)
        pod = found.setdefault(
            uid, Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid), spec=PodSpec(containers=[]))
        )
        assert pod.spec is not None
        assert pod.spec.containers is not None
        pod.spec.containers.append(Container(name=each.labels.get(labels.CONTAINER_NAME), image=each.image_ref))
    return pod_list(found.values())


def pod_list(pods: Iterable[Pod]) -> Response:
    """Pods as a PodList; their kind is not said again."""
    items = [goencoder.encode(msgspec.structs.replace(each, kind=None, api_version=None)) for each in pods]
    return json(b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[%b]}\n' % b",".join(items))
