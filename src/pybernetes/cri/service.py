"""CRI v1 served over gRPC: any object with `Runtime`'s methods becomes a runtime behind a socket.

A method that the servicer lacks is answered `Unimplemented`, as upstream's servers do; a `CRIError` it raises goes to
the caller with its code, anything else as `Unknown` with its text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.cri import v1
from pybernetes.cri.errors import CODES, CRIError
from pybernetes.cri.remote import OPTIONS, snake_case
from pybernetes.cri.tracing import SPANS, begin, give
from pybernetes.protofile import Method
from pybernetes.trace import recorder

_STATUS = {status.value[0]: status for status in grpc.StatusCode}


def handlers(servicer: Any) -> list[Any]:
    """Both services, for `grpc.aio.Server.add_generic_rpc_handlers`."""
    services: dict[str, dict[str, Any]] = {}
    for method in v1.methods():
        function = getattr(servicer, snake_case(method.name), None)
        if function is not None:
            services.setdefault(method.service, {})[method.name] = _handler(method, function)
    package = v1.proto().package
    return [grpc.method_handlers_generic_handler(f"{package}.{name}", calls) for name, calls in services.items()]


def server_at(socket: Path, servicer: Any) -> grpc.aio.Server:
    """A server at a unix socket, in place of what was there; the caller starts and stops it."""
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers(handlers(servicer))
    socket.unlink(missing_ok=True)
    server.add_insecure_port(f"unix://{socket.absolute()}")
    return server


def _handler(method: Method, function: Any) -> Any:
    async def unary(request: Any, context: Any) -> Any:
        if recorder.RECORDER is not None:
            begin(context.invocation_metadata())
        try:
            return await function(request)
        except CRIError as error:
            await context.abort(_STATUS[CODES[error.code]], error.message)
        finally:
            if recorder.RECORDER is not None and recorder.RECORDER.finished:
                context.set_trailing_metadata(((SPANS, give()),))

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for response in function(request):
                yield response
        except CRIError as error:
            await context.abort(_STATUS[CODES[error.code]], error.message)

    kind = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
    return kind(
        stream if method.streams else unary,
        request_deserializer=method.request.FromString,
        response_serializer=method.response.SerializeToString,
    )
