"""`./pyb bench api`: how fast and how small the API server is, for each store.

Start, GET, LIST, CREATE, PATCH, watch fan-out, memory; rates beside what upstream would reach on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import sys
import tempfile
import time
import urllib.error
from pathlib import Path
from typing import Any

from _load import TOKEN, UPSTREAM, Report, Server, etcd, sending, wrk, yardstick

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "load-", "labels": {"app": "load", "pod-template-hash": "7c5ddbdf54"}},
    "spec": {
        "automountServiceAccountToken": False,
        "nodeSelector": {"load-test": "never-runs"},
        "containers": [
            {
                "name": "nginx",
                "image": "nginx:1.25",
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ],
            }
        ],
    },
}
CONFIGMAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"generateName": "load-", "labels": {"app": "load"}},
    "data": {"a": "b", "c": "d"},
}
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/bench.example.com/v1/namespaces/default/widgets"
WIDGET = {
    "apiVersion": "bench.example.com/v1",
    "kind": "Widget",
    "metadata": {"generateName": "load-", "labels": {"app": "load"}},
    "spec": {"a": "b", "c": "d"},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.bench.example.com"},
    "spec": {
        "group": "bench.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["a"],
                                "properties": {
                                    "a": {"type": "string", "maxLength": 10},
                                    "c": {"type": "string"},
                                    "replicas": {"type": "integer", "default": 1},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench api")
    parser.add_argument("--stores", default="sqlite,etcd", help="of sqlite, etcd, memory")
    parser.add_argument("--seconds", type=int, default=4, help="of each load")
    parser.add_argument("--pods", type=int, default=10_000, help="for LIST, memory and restart")
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1000)
    options = parser.parse_args(argv)
    report = Report("api")
    with tempfile.TemporaryDirectory(prefix="pyb-bench-") as name:
        folder = Path(name)
        fixed = yardstick(folder)
        report.row("yardstick (aiohttp hello, TLS)", fixed, "req/s")
        for store in options.stores.split(","):
            own = folder / store
            own.mkdir()
            if store == "etcd":
                with etcd(own) as url:
                    measure(report, store, url, own, fixed, options)
            else:
                url = "memory://" if store == "memory" else f"sqlite://{own}/store.db"
                measure(report, store, url, own, fixed, options)
    report.save()
    return 0


def give_account(server: Server) -> None:
    """The account that pods ask for; in a cluster a controller makes it."""
    with contextlib.suppress(urllib.error.HTTPError):  # it is there already
        server.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})


def measure(report: Report, name: str, url: str, folder: Path, fixed: float, options: argparse.Namespace) -> None:
    """All rows of one store."""
    unlimited = ("--max-requests-inflight=0", "--max-mutating-requests-inflight=0")
    server = Server(folder, url, "--enable-priority-and-fairness=false", *unlimited)
    try:
        give_account(server)
        report.row(f"{name}: ready, empty store", server.ready_after, "s", "target 0.6")
        report.row(f"{name}: resident, empty store", server.resident_mb(), "MB", "target 70")
        rates(report, name, server, fixed, options.seconds)
        fan_out(report, name, server, options.watchers, options.events)
        server.call("DELETE", f"{PODS}?gracePeriodSeconds=0")
        server.call("DELETE", MAPS)
        server.call("DELETE", WIDGETS)
    finally:
        server.stop()
    server = Server(folder, url, "--max-mutating-requests-inflight=0")
    try:
        give_account(server)
        before = server.resident_mb()
        asyncio.run(fill(server, options.pods))
        report.row(
            f"{name}: resident, {options.pods} pods", server.resident_mb(), "MB", f"target 250, {before:.0f} before"
        )
        started = time.perf_counter()
        size = len(server.call("GET", f"{PODS}?resourceVersion=0"))
        report.row(f"{name}: LIST {options.pods} pods", time.perf_counter() - started, "s", f"{size / 1e6:.1f} MB")
    finally:
        server.stop()
    if url == "memory://":
        return
    server = Server(folder, url)
    try:
        report.row(f"{name}: ready, {options.pods} pods", server.ready_after, "s", "target 1.5")
        report.row(f"{name}: resident after restart", server.resident_mb(), "MB")
    finally:
        server.stop()


def rates(report: Report, store: str, server: Server, fixed: float, seconds: int) -> None:
    """Requests a second under load."""
    pod = json.loads(server.call("POST", PODS, POD))["metadata"]["name"]
    for number in range(500):
        server.call("POST", PODS, {**POD, "metadata": {"name": f"page-{number:04}"}})
    widget = define(server)
    loads: dict[str, tuple[str, int, str]] = {
        "GET pod": (f"{PODS}/{pod}", 32, ""),
        "LIST 500 pods": (f"{PODS}?limit=500", 8, ""),
        "POST configmap": (MAPS, 32, sending("POST", CONFIGMAP)),
        "GET custom resource": (f"{WIDGETS}/{widget}", 32, ""),
        "POST custom resource": (WIDGETS, 32, sending("POST", WIDGET)),
        "POST pod, 1 connection": (PODS, 1, sending("POST", POD)),
        "POST pod": (PODS, 32, sending("POST", POD)),
        "PATCH one pod (merge)": (f"{PODS}/{pod}", 32, changing_patch()),
    }
    for title, (path, connections, script) in loads.items():
        rate = wrk(server.url + path, seconds=seconds, connections=connections, script=script)
        note = f"p50 {rate.p50} p99 {rate.p99}"
        if title in UPSTREAM:
            times = rate.per_second / (UPSTREAM[title] * fixed)
            note += f"  {times:.2f} x upstream"
            report.rows[f"{store}: {title}, times upstream"] = times
        if rate.failed:
            note += f"  ({rate.failed} FAILED)"
        report.row(f"{store}: {title}", rate.per_second, "req/s", note)


def define(server: Server) -> str:
    """Define a kind beside the built-in ones; returns the name of an object of it."""
    server.call("POST", DEFINITIONS, DEFINITION)
    for _ in range(100):
        status = json.loads(server.call("GET", f"{DEFINITIONS}/widgets.bench.example.com"))["status"]
        if any(each["type"] == "Established" and each["status"] == "True" for each in status["conditions"] or ()):
            break
        time.sleep(0.02)
    return str(json.loads(server.call("POST", WIDGETS, WIDGET))["metadata"]["name"])


def changing_patch() -> str:
    """A wrk script whose every patch changes something, else nothing would be written."""
    return (
        'wrk.method="PATCH"; wrk.headers["Content-Type"]="application/merge-patch+json"\n'
        "local n = 0\n"
        "request = function() n = n + 1; return wrk.format(nil, nil, nil, "
        '\'{"metadata":{"annotations":{"a":"\' .. n .. \'"}}}\') end'
    )


def fan_out(report: Report, store: str, server: Server, watchers: int, events: int) -> None:
    """Many watchers, many events: when does each arrive?"""
    latencies, seconds = asyncio.run(_fan_out(server, watchers, events))
    latencies.sort()
    report.row(
        f"{store}: watch, {watchers} x {events} deliveries", len(latencies) / seconds, "ev/s", f"in {seconds:.1f} s"
    )
    for part in (50, 99):
        value = latencies[min(len(latencies) - 1, len(latencies) * part // 100)]
        report.row(f"{store}: watch, delivery p{part}", value * 1000, "ms")


async def _fan_out(server: Server, watchers: int, events: int) -> tuple[list[float], float]:
    tls = ssl._create_unverified_context()
    version = json.loads(server.call("GET", f"{MAPS}?limit=1"))["metadata"]["resourceVersion"]
    latencies: list[float] = []
    mark = b'"sent":"'

    async def follow() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls, limit=1 << 22)
        path = f"{MAPS}?watch=true&resourceVersion={version}"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        started.release()
        seen, rest = 0, b""
        while seen < events:
            data = rest + await reader.read(1 << 18)
            now = time.time()
            parts = data.split(mark)
            rest = b""
            for part in parts[1:]:
                if len(part) < 20:  # the time was cut in two
                    rest = mark + part
                    break
                seen += 1
                latencies.append(now - float(part[:17]))
            else:
                rest = parts[-1][-len(mark) :] if len(parts) == 1 else parts[-1][20:][-len(mark) :]
        writer.close()

    started = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(follow()) for _ in range(watchers)]
    for _ in range(watchers):
        await started.acquire()
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
    for _ in range(events):
        body = json.dumps({"metadata": {"generateName": "w-", "annotations": {"sent": f"{time.time():017.6f}"}}})
        head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
    writer.close()
    await asyncio.gather(*tasks)
    return latencies, time.perf_counter() - began


async def fill(server: Server, pods: int) -> None:
    """Create pods over a few connections."""
    tls = ssl._create_unverified_context()
    body = json.dumps(POD)
    head = f"POST {PODS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    left = pods

    async def work() -> None:
        nonlocal left
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
        while left > 0:
            left -= 1
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 201 " in answer, answer
            await reader.readexactly(int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        writer.close()

    await asyncio.gather(*(work() for _ in range(16)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
