"""`./pyb bench trace`: what recording costs.

CPU time of the API server for a request, recorded and not, in turn on two servers with the same load: creates of pods
and ConfigMaps and GETs, each naming another span as our components' requests do. CPU time counts what recording costs
also where other work runs on the machine. Then how long `pyb trace` takes for the tree of 1,000 pods, without the
network.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import itertools
import json
import ssl
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from _load import TOKEN, Report, Server, make_signing_key
from api import CONFIGMAP, FLAGS, MAPS, POD, PODS, give_account

from pybernetes.trace import context
from pybernetes.trace.span import Span
from pybernetes.trace.text import render
from pybernetes.trace.tree import Spans

LOADS = {
    "create pods": ("POST", PODS, POD),
    "create configmaps": ("POST", MAPS, CONFIGMAP),
    "get a namespace": ("GET", "/api/v1/namespaces/default", None),
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench trace", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of both servers, in turn (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=4000, help="of each load in a round (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=16, help="connections (default: %(default)s)")
    parser.add_argument("--store", choices=["sqlite", "memory"], default="sqlite", help="default: %(default)s")
    arguments = parser.parse_args(argv)
    report = Report("trace")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(_server(Path(folder) / name, name, arguments.store)) for name in ("off", "on")
        }
        spent: dict[tuple[str, str], list[float]] = {}
        for number in range(arguments.rounds + 1):
            for (title, load), (name, server) in itertools.product(LOADS.items(), servers.items()):
                used = _measure(server, load, name == "on", arguments.requests, arguments.clients)
                if number:  # the first round imports what the kinds need
                    spent.setdefault((title, name), []).append(used)
        for title in LOADS:
            off, on = (statistics.median(spent[title, name]) for name in ("off", "on"))
            report.row(f"{title}: CPU time of the server, off", off * 1e6, "us")
            report.row(f"{title}: CPU time of the server, on", on * 1e6, "us")
            report.row(f"{title}: rate with recording on, of that without", off / on, "x")
    seconds, lines = _print_tree(1000)
    report.row(f"tree of 1,000 pods ({lines} lines): read, joined and printed (CPU time)", seconds, "s")
    report.save()
    return 0


@contextlib.contextmanager
def _server(folder: Path, name: str, kind: str) -> Any:
    folder.mkdir()
    store = f"sqlite://{folder}/store.db" if kind == "sqlite" else "memory://"
    make_signing_key(folder)
    keys = [f"--service-account-key-file={folder}/sa.key", f"--service-account-signing-key-file={folder}/sa.key"]
    recording = [f"--trace-dir={folder}/trace"] if name == "on" else []
    server = Server(folder, store, *FLAGS, *keys, *recording)
    try:
        give_account(server)
        yield server
    finally:
        server.process.terminate()
        server.process.wait()


def _cpu(pid: int) -> float:
    """Seconds on a processor of the thread that serves requests and of those beside it, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in tasks) / 1e9


def _measure(server: Server, load: tuple[str, str, Any], traced: bool, count: int, clients: int) -> float:
    """Seconds of CPU that the server needed for a request."""
    before = _cpu(server.process.pid)
    asyncio.run(_send(server.port, load, traced, count, clients))
    return (_cpu(server.process.pid) - before) / count


async def _send(port: int, load: tuple[str, str, Any], traced: bool, count: int, clients: int) -> None:
    method, path, body = load
    data = json.dumps(body).encode() if body else b""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    ).encode()
    numbers = iter(range(1, count + 1))
    trace = context.new_trace()

    async def client() -> None:
        tls = ssl._create_unverified_context()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        for number in numbers:
            parent = f"traceparent: {context.format_header(trace, f'{number:016x}')}\r\n".encode() if traced else b""
            writer.write(head + parent + b"\r\n" + data)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), answer
            await reader.readexactly(int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())


def _print_tree(pods: int) -> tuple[float, int]:
    """A Deployment of so many pods, with the spans that each has on the way to Ready."""
    from pybernetes.trace.span import Batch, decoder, encoder

    number = itertools.count(1)
    revision = itertools.count(1)
    spans: list[Span] = []

    def span(name: str, trace: str, parent: str = "", causes: list[int] | None = None, writes: bool = False) -> Span:
        start = next(number) * 100_000
        made = Span(trace, f"{start:016x}", parent, name, "test", start, start + 90_000, {"object": "default/web-1"})
        made.causes, made.revisions = causes or [], [next(revision)] if writes else []
        made.marks = [(start + 1000, "authenticated", ""), (start + 2000, "stored", "")] if writes else []
        spans.append(made)
        return made

    reconcile = span("reconcile replicaset", "0" * 31 + "1")
    for index in range(pods):
        create = span("create pods", reconcile.trace, reconcile.id, writes=True)
        schedule = span("schedule", f"a{index:031x}", causes=create.revisions)
        bind = span("create pods/binding", schedule.trace, schedule.id, writes=True)
        sync = span("SyncPod", f"b{index:031x}", causes=bind.revisions)
        for call in ("RunPodSandbox", "CNI ADD", "CreateContainer", "StartContainer"):
            span(f"CRI {call}", sync.trace, sync.id)
        for _ in range(2):
            status = span("patch pods/status", sync.trace, sync.id, writes=True)
            span("reconcile replicaset", f"c{index:031x}", causes=status.revisions)
    lines = [encoder.encode(Batch(spans[first : first + 1000])) for first in range(0, len(spans), 1000)]
    began = time.process_time()
    read = [span for line in lines for span in decoder.decode(line).spans]
    out = io.StringIO()
    out.write("\n".join(render(Spans(read).trees())))
    return time.process_time() - began, out.getvalue().count("\n")
