"""Whether containerd itself knows a container, also one that was made without CRI (`ctr`, `nerdctl`)."""

from __future__ import annotations

from functools import cache

import grpc.aio  # type: ignore[import-untyped]

from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime, to_cri_error
from pybernetes.protofile import Proto, parse

NAMESPACE = (("containerd-namespace", "k8s.io"),)
"""Where containerd's CRI part keeps its containers."""
TIMEOUT = 30.0
PROTO = """
syntax = "proto3";
package containerd.services.containers.v1;
message GetContainerRequest { string id = 1; }
message GetContainerResponse {}
"""
# The answer has the whole container in it, of which nothing is needed.


@cache
def _proto() -> Proto:
    return parse(PROTO, "containers.proto")


async def is_known(runtime: Runtime, id: str) -> bool:
    """Whether there is a container of this id."""
    names = _proto().names
    get = runtime.channel().unary_unary(
        "/containerd.services.containers.v1.Containers/Get",
        request_serializer=names["GetContainerRequest"].SerializeToString,
        response_deserializer=names["GetContainerResponse"].FromString,
    )
    try:
        await get(names["GetContainerRequest"](id=id), metadata=NAMESPACE, timeout=TIMEOUT)
    except grpc.aio.AioRpcError as error:
        refusal: CRIError = to_cri_error(error)
        if refusal.not_found:
            return False
        raise refusal from None
    return True
