"""Export by OTLP: every field as a collector that was made from the published messages reads it, over gRPC and HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pybernetes import protofile
from pybernetes.client.otlp import METHOD, Exporter
from pybernetes.trace import otlp_wire
from pybernetes.trace.configuration import Tracing, of_file
from pybernetes.trace.span import Span

PROTO = protofile.read(Path(__file__).with_name("otlp.proto"))
REQUEST = PROTO.names["ExportTraceServiceRequest"]
TRACE, ALWAYS = "0" * 16 + "00000000000000ff", 1_000_000


def span(id: int, **more: Any) -> Span:
    return Span(TRACE, f"{id:016x}", "", "create pods", "apiserver", 10**18 + id, 10**18 + id + 5, **more)


def values(attributes: Any) -> dict[str, Any]:
    found = {}
    for each in attributes:
        held = each.value.ListFields()
        found[each.key] = held[0][1] if held else None
    return found


def test_a_collector_reads_every_field() -> None:
    full = span(
        2,
        attributes={"code": 201, "name": "wéb", "ratio": 0.5, "dry": True, "below": -3},
        causes=[7, 8],
        revisions=[9],
        marks=[(10**18 + 3, "stored", ""), (10**18 + 4, "ScalingReplicaSet", "to 2")],
        error="conflict",
    )
    full.parent = f"{1:016x}"
    other = Span(TRACE, f"{3:016x}", "", "schedule", "kube-scheduler", 5, 0)
    found = REQUEST.FromString(otlp_wire.request([full, other], "v1.36.0", lambda each: [("a" * 32, "b" * 16)]))
    assert [values(each.resource.attributes)["service.name"] for each in found.resource_spans] == [
        "apiserver",
        "kube-scheduler",
    ]
    scope = found.resource_spans[0].scope_spans[0]
    assert (scope.scope.name, scope.scope.version) == ("pybernetes", "v1.36.0")
    (read,) = scope.spans
    assert (read.trace_id.hex(), read.span_id.hex(), read.parent_span_id.hex()) == (TRACE, full.id, full.parent)
    assert (read.name, read.kind) == ("create pods", 2)
    assert (read.start_time_unix_nano, read.end_time_unix_nano) == (full.start, full.end)
    assert values(read.attributes) == {
        "code": 201, "name": "wéb", "ratio": 0.5, "dry": True, "below": -3,
        "pybernetes.causes": "7,8", "pybernetes.revisions": "9",
    }  # fmt: skip
    assert [(each.time_unix_nano, each.name, values(each.attributes)) for each in read.events] == [
        (10**18 + 3, "stored", {}),
        (10**18 + 4, "ScalingReplicaSet", {"message": "to 2"}),
    ]
    assert [(each.trace_id.hex(), each.span_id.hex()) for each in read.links] == [("a" * 32, "b" * 16)]
    assert (read.status.code, read.status.message) == (2, "conflict")
    (going_on,) = found.resource_spans[1].scope_spans[0].spans
    assert (going_on.kind, going_on.parent_span_id, going_on.end_time_unix_nano, going_on.status.code) == (1, b"", 5, 0)


class Received(list[Any]):
    """Requests; `first` is set when there is one."""

    def __init__(self) -> None:
        self.first = asyncio.Event()

    def append(self, request: Any) -> None:
        super().append(request)
        self.first.set()


@contextlib.asynccontextmanager
async def collector(kind: str, received: list[Any], answers: list[int]) -> AsyncIterator[str]:
    """A receiver at a free port: what it got, and the status codes that it answers first."""
    if kind == "grpc":
        import grpc
        import grpc.aio

        async def export(request: Any, context: Any) -> Any:
            if answers:
                await context.abort(grpc.StatusCode.UNAVAILABLE, f"{answers.pop(0)}")
            received.append(request)
            return PROTO.names["ExportTraceServiceResponse"]()

        (method,) = PROTO.methods
        assert method.path == METHOD
        service = f"{PROTO.package}.{method.service}"
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            export, request_deserializer=REQUEST.FromString, response_serializer=lambda each: each.SerializeToString()
        )
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {method.name: handler})])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        yield f"127.0.0.1:{port}"
        await server.stop(None)
        return

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
                body = await reader.readexactly(length)
                status = answers.pop(0) if answers else 200
                if status == 200:
                    assert head.startswith("post /v1/traces ")
                    assert "content-type: application/x-protobuf\r\n" in head
                    received.append(REQUEST.FromString(body))
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_spans_arrive_after_a_failure_with_links_to_who_wrote_what_woke_them(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybernetes.client.otlp.GATHER", 0.01)
    monkeypatch.setattr("pybernetes.client.otlp.LATER", 0.01)

    async def run() -> None:
        received = Received()
        async with collector(kind, received, [503]) as endpoint, asyncio.timeout(60):
            exporter = Exporter(Tracing(endpoint=endpoint, sampling_rate_per_million=ALWAYS))
            task = asyncio.create_task(exporter.run())
            exporter.add([span(1, revisions=[7]), span(2, causes=[7, 6])])
            await received.first.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            one, two = received[0].resource_spans[0].scope_spans[0].spans
            assert [each.span_id for each in two.links] == [one.span_id]
            assert not one.links
            assert exporter.lost == 0

    asyncio.run(run())


def test_a_collector_that_is_away_costs_spans_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pybernetes.client.otlp.GATHER", 0.0)
    monkeypatch.setattr("pybernetes.client.otlp.LATER", 0.0)

    async def run() -> None:
        exporter = Exporter(Tracing(endpoint="http://127.0.0.1:1", sampling_rate_per_million=ALWAYS))
        task = asyncio.create_task(exporter.run())
        exporter.add([span(1)])
        for _ in range(1000):  # rounds of the loop in each of which an attempt is refused
            await asyncio.sleep(0.001)
            if exporter.lost:
                break
        assert exporter.lost == 1
        assert not task.done()
        task.cancel()

    asyncio.run(run())
    assert "1 spans could not be exported to http://127.0.0.1:1" in caplog.text


def test_a_trace_is_exported_by_the_rate_or_because_its_client_wants_it() -> None:
    exporter = Exporter(Tracing())
    exporter.add([span(1)])
    assert exporter._waiting == []
    asked = span(2, attributes={"code": 200, "agent": "curl/8"})
    asked.parent = "1" * 16
    exporter.add([asked, span(3)])
    assert [each.id for each in exporter._waiting] == [f"{2:016x}", f"{3:016x}"]


def test_the_file_is_upstreams() -> None:
    found = of_file(
        b'{"apiVersion":"apiserver.config.k8s.io/v1","kind":"TracingConfiguration",'
        b'"endpoint":"collector:4317","samplingRatePerMillion":100}'
    )
    assert (found.target, found.sampling_rate_per_million) == ("collector:4317", 100)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ('"kind":"Tracing"', "is not a TracingConfiguration"),
        ('"samplingRatePerMillion":-1', "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"),
        ('"samplingRatePerMillion":2000000', "must be less than or equal to one million"),
        ('"endpoint":"nowhere"', 'endpoint: Invalid value: "nowhere"'),
        ('"endpoints":"x:1"', "unknown field"),
    ],
)
def test_a_file_that_is_wrong_is_refused(fields: str, wrong: str) -> None:
    whole = f'{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"TracingConfiguration",{fields}}}'
    with pytest.raises(ValueError, match=wrong):
        of_file(whole.encode())
