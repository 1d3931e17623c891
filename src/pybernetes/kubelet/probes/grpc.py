"""A probe by gRPC's health protocol (grpc.health.v1.Health/Check): success is SERVING."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pybernetes.api.gocompat.quote import quote
from pybernetes.api.times import format_duration
from pybernetes.cri.errors import code_name
from pybernetes.version import GIT_VERSION

from .dialing import address
from .outcome import Outcome, Verdict

_METHOD: Final = "/grpc.health.v1.Health/Check"
_STATUSES: Final = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


async def grpc_probe(host: str, port: int, service: str, within: float) -> Outcome:
    """Ask. Whatever goes wrong is a failure, as with upstream."""
    import grpc.aio  # type: ignore[import-untyped]

    where = address(host, port)
    limit = format_duration(int(within * 1e9))
    deadline = asyncio.get_running_loop().time() + within
    options = [
        ("grpc.primary_user_agent", f"kube-probe/{'.'.join(GIT_VERSION.removeprefix('v').split('.')[:2])}"),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    async with grpc.aio.insecure_channel(where, options) as channel:
        try:
            async with asyncio.timeout(within):
                await channel.channel_ready()
        except TimeoutError:
            return Outcome(
                Verdict.FAILURE,
                f"timeout: failed to connect service {quote(where)} within {limit}: context deadline exceeded",
            )
        check = channel.unary_unary(_METHOD, request_serializer=_request, response_deserializer=_status)
        try:
            status = await check(service, timeout=max(deadline - asyncio.get_running_loop().time(), 0.001))
        except grpc.aio.AioRpcError as error:
            return Outcome(Verdict.FAILURE, _failure(error, limit))
    if status != 1:
        return Outcome(
            Verdict.FAILURE, f"service unhealthy (responded with {quote(_STATUSES.get(status, str(status)))})"
        )
    return Outcome(Verdict.SUCCESS, "service healthy")


def _failure(error: Any, limit: str) -> str:
    code = code_name(error.code().value[0])
    if code == "Unimplemented":
        return (
            f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {error.details()}"
        )
    if code == "DeadlineExceeded":
        return f"timeout: health rpc did not complete within {limit}"
    return f"error: health rpc probe failed: rpc error: code = {code} desc = {error.details()}"


def _request(service: str) -> bytes:
    """HealthCheckRequest{service = 1}."""
    text = service.encode()
    return b"\x0a" + _varint(len(text)) + text if text else b""


def _status(message: bytes) -> int:
    """HealthCheckResponse{status = 1}; 0 if it is left out."""
    if message[:1] != b"\x08":
        return 0
    number = shift = 0
    for byte in message[1:]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return number


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
