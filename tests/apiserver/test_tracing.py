"""The API server records which span wrote which revision, and serves the spans of all components."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from apiserver.in_process import call, serving

from pybernetes.trace import context
from pybernetes.trace.span import Batch, Span, encoder
from pybernetes.trace.store import SPANS

MAPS = "/api/v1/namespaces/default/configmaps"


async def spans_of(port: int, query: str = "") -> tuple[dict[str, Any], list[Span]]:
    status, body = await call(port, "GET", f"{SPANS}{query}")
    assert status == 200, body
    head, *batches = body.splitlines()
    import msgspec

    found = [span for line in batches for span in msgspec.json.decode(line, type=Batch).spans]
    return json.loads(head), found


def test_requests_are_spans_that_list_their_revisions(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, f"--trace-dir={tmp_path}/trace") as server:
            parent = context.format_header("a" * 32, "b" * 16)
            made = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "web"}}
            status, body = await call(server.port, "POST", MAPS, made, traceparent=parent)
            assert status == 201, body
            revision = int(json.loads(body)["metadata"]["resourceVersion"])
            assert (await call(server.port, "POST", MAPS, made))[0] == 409
            assert (await call(server.port, "GET", f"{MAPS}/web"))[0] == 200
            assert (await call(server.port, "GET", f"{MAPS}/web", traceparent=parent))[0] == 200
            assert (await call(server.port, "DELETE", f"{MAPS}/web"))[0] == 200
            _, found = await spans_of(server.port)
            ours = [span for span in found if span.attributes.get("namespace") == "default"]
            create, again, get, delete = sorted(ours, key=lambda each: each.start)
            assert (create.trace, create.parent, create.revisions) == ("a" * 32, "b" * 16, [revision])
            assert create.attributes["object"] == "/registry/configmaps/default/web"
            assert [name for _, name, _ in create.marks] == [
                *("authenticated", "authorized", "decoded", "mutating admission"),
                *("validated", "validating admission", "stored"),
            ]
            assert (again.name, again.parent, again.attributes["code"]) == ("create configmaps", "", 409)
            assert "already exists" in again.error
            assert (get.name, get.parent, get.revisions) == ("get configmaps", "b" * 16, [])
            assert delete.revisions[0] > revision

    asyncio.run(run())


def test_a_head_that_differs_in_its_trace_alone_is_known(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, f"--trace-dir={tmp_path}/trace") as server:
            for number in range(1, 4):
                parent = context.format_header("a" * 32, f"{number:016x}")
                assert (await call(server.port, "GET", "/api/v1/namespaces/default", traceparent=parent))[0] == 200
            assert sum(b"namespaces/default " in raw for raw in server._http.heads._known) == 1
            assert not any(b"traceparent" in raw for raw in server._http.heads._known)
            _, found = await spans_of(server.port)
            assert [span.parent for span in found if span.name == "get namespaces"] == [f"{n:016x}" for n in (1, 2, 3)]

    asyncio.run(run())


def test_components_hand_in_spans_and_what_is_none_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, f"--trace-dir={tmp_path}/trace") as server:
            head, _ = await spans_of(server.port)
            handed = Span("c" * 32, "d" * 16, "", "reconcile", "x", 1, 2, causes=[7])
            batch = json.loads(encoder.encode(Batch([handed])))
            assert (await call(server.port, "POST", SPANS, batch))[0] == 200
            assert (await call(server.port, "POST", SPANS, {"spans": [1]}))[0] == 400
            assert (await call(server.port, "PUT", SPANS, batch))[0] == 405
            assert (await call(server.port, "GET", f"{SPANS}?after=x"))[0] == 400
            _, found = await spans_of(server.port, f"?after={head['next']}")
            assert [(span.name, span.causes) for span in found] == [("reconcile", [7])]
            role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:pybernetes:span-writer"
            assert (await call(server.port, "GET", role))[0] == 200
        async with serving(tmp_path, f"--trace-dir={tmp_path}/trace") as server:  # after a restart
            _, found = await spans_of(server.port)
            assert "reconcile" in {span.name for span in found}

    asyncio.run(run())


def test_an_annotation_names_the_span_where_no_header_does(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, f"--trace-dir={tmp_path}/trace") as server:
            named = {"tracing.k8s.io/traceparent": context.format_header("c" * 32, "d" * 16)}
            made = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generateName": "web-", "annotations": named}}
            parent = context.format_header("a" * 32, "b" * 16)
            assert (await call(server.port, "POST", MAPS, made))[0] == 201
            assert (await call(server.port, "POST", MAPS, made, traceparent=parent))[0] == 201
            named["tracing.k8s.io/traceparent"] = "nonsense"
            assert (await call(server.port, "POST", MAPS, made))[0] == 201
            _, found = await spans_of(server.port)
            ours = [
                span for span in found if span.name == "create configmaps" and span.attributes.get("user") == "admin"
            ]
            parents = [(span.trace[0], span.parent[:1]) for span in sorted(ours, key=lambda each: each.start)]
            assert parents[:2] == [("c", "d"), ("a", "b")]
            assert parents[2][1] == ""

    asyncio.run(run())


def test_spans_are_exported_to_the_collector_of_the_file(tmp_path: Path) -> None:
    async def run() -> None:
        received = asyncio.Event()

        async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            if b"create configmaps" in body:
                received.set()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await reader.read()
            writer.close()

        async with await asyncio.start_server(collect, "127.0.0.1", 0) as collector:
            port = collector.sockets[0].getsockname()[1]
            (tmp_path / "tracing.yaml").write_text(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
                f"endpoint: http://127.0.0.1:{port}\nsamplingRatePerMillion: 1000000\n"
            )
            async with serving(tmp_path, f"--tracing-config-file={tmp_path}/tracing.yaml") as server:
                made = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "web"}}
                assert (await call(server.port, "POST", MAPS, made))[0] == 201
                async with asyncio.timeout(60):
                    await received.wait()

    asyncio.run(run())


def test_without_the_flag_there_is_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as server:
            assert (await call(server.port, "GET", SPANS))[0] == 404

    asyncio.run(run())
