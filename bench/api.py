"""`./pyb bench api`: how fast and how small the API server is, for each store.

Start, GET, LIST, CREATE, PATCH, watch fan-out, memory: medians and ranges of five rounds, each on an empty store. With
`--beside DIR` upstream's server and etcd run in turn with ours, with the same client, flags, counts and user, and a
ratio of the medians is printed; without it there is no ratio, because nothing was compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import ssl
import statistics
import sys
import tempfile
import time
import urllib.error
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _load import OURS, TOKEN, Report, Server, etcd, make_signing_key, sending, shown, wrk

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


FLAGS = (
    "--enable-priority-and-fairness=false",
    "--max-requests-inflight=0",
    "--max-mutating-requests-inflight=0",
    "--authorization-mode=RBAC",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--service-account-issuer=https://bench.example",
)
"""Both servers get the same: the user of the load may do everything, without flow control."""
STORES = {"sqlite": "SQLite", "etcd": "etcd", "memory": "memory"}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench api", description=__doc__)
    parser.add_argument("--stores", default="sqlite,etcd", help="ours, of sqlite, etcd, memory (default: %(default)s)")
    parser.add_argument("--beside", metavar="DIR", help="a folder with upstream's kube-apiserver and etcd")
    parser.add_argument("--rounds", type=int, default=5, help="of both servers, in turn (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=4, help="of each load (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=10_000, help="for LIST, memory and restart")
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--loads", default="", help="only those whose title has this in it")
    options = parser.parse_args(argv)
    report = Report("api")
    theirs = Path(options.beside).resolve() if options.beside else None
    for name in ("kube-apiserver", "etcd") if theirs else ():
        if not os.access(theirs / name, os.X_OK):  # type: ignore[operator]
            raise SystemExit(f"--beside: no program {name} in {theirs}")
    for store in options.stores.split(","):
        sides = {"ours": Side(f"ours with {STORES[store]}", store, OURS, "etcd")}
        if theirs:
            sides["theirs"] = Side("theirs with etcd", "etcd", (str(theirs / "kube-apiserver"),), str(theirs / "etcd"))
        compare(report, store, sides, options)
    report.save()
    return 0


class Side(NamedTuple):
    """A server to measure: its title, its kind of store, its program, and the etcd it uses if it uses one."""

    title: str
    store: str
    program: Sequence[str]
    etcd: str


def compare(report: Report, store: str, sides: dict[str, Side], options: argparse.Namespace) -> None:
    """Measures the sides in turn, and prints medians and ranges; a ratio only where both ran in this very run."""
    found: dict[str, list[dict[str, Figure]]] = {name: [] for name in sides}
    print(f"== {', '.join(side.title for side in sides.values())}; {options.rounds} rounds each, in turn")
    for number in range(options.rounds):
        for name, side in sides.items():
            with tempfile.TemporaryDirectory(prefix="pyb-bench-") as folder:
                figures, flags = one_round(side, Path(folder), options)
            found[name].append(figures)
            if number == 0:
                print(f"   {side.title}: {' '.join(flags)}", flush=True)
    for title, figure in found["ours"][0].items():
        ours = [each[title].value for each in found["ours"]]
        note = spread(ours)
        report.rows[f"{store}: {title}, all"] = ours
        if "theirs" in found:
            others = [each[title].value for each in found["theirs"]]
            ratio = statistics.median(ours) / statistics.median(others)
            report.rows |= {f"{store}: {title}, theirs": others, f"{store}: {title}, ratio": ratio}
            ranges = [one / other for one, other in zip(ours, others, strict=True)]
            note += f"  theirs {shown(statistics.median(others))} {spread(others)}"
            note += f"  ratio {ratio:.2f} {spread(ranges, '.2f')}"
        report.row(f"{store}: {title}", statistics.median(ours), figure.unit, note)


def spread(values: Sequence[float], form: str = "") -> str:
    """The least and the most."""
    if form:
        return f"({min(values):{form}}-{max(values):{form}})"
    return f"({shown(min(values))}-{shown(max(values))})"


class Figure(NamedTuple):
    value: float
    unit: str


def one_round(side: Side, folder: Path, options: argparse.Namespace) -> tuple[dict[str, Figure], list[str]]:
    """All figures of one server on an empty store, and its flags."""
    with contextlib.ExitStack() as stack:
        if side.store == "etcd":
            url = stack.enter_context(etcd(folder, side.etcd))
        else:
            url = "memory://" if side.store == "memory" else f"sqlite://{folder}/store.db"
        return measure(side, url, folder, options)


def give_account(server: Server) -> None:
    """The account that pods ask for; in a cluster a controller makes it."""
    with contextlib.suppress(urllib.error.HTTPError):  # it is there already
        server.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})


def measure(side: Side, url: str, folder: Path, options: argparse.Namespace) -> tuple[dict[str, Figure], list[str]]:
    """All figures of one server."""
    make_signing_key(folder)
    keys = (f"--service-account-key-file={folder}/sa.key", f"--service-account-signing-key-file={folder}/sa.key")
    found: dict[str, Figure] = {}

    @contextlib.contextmanager
    def running() -> Iterator[Server]:
        server = Server(folder, url, *FLAGS, *keys, program=side.program)
        try:
            give_account(server)
            yield server
        finally:
            server.stop()

    with running() as server:
        found["ready, empty store"] = Figure(server.ready_after, "s")
        found["resident, empty store"] = Figure(server.resident_mib(), "MiB")
        found |= rates(server, options.seconds, options.loads)
        found |= fan_out(server, options.watchers, options.events)
        for path in (f"{PODS}?gracePeriodSeconds=0", MAPS, WIDGETS):
            server.call("DELETE", path)
    with running() as server:
        asyncio.run(fill(server, options.pods))
        found[f"resident, {options.pods} pods"] = Figure(server.resident_mib(), "MiB")
        started = time.perf_counter()
        server.call("GET", f"{PODS}?resourceVersion=0")
        found[f"LIST {options.pods} pods"] = Figure(time.perf_counter() - started, "s")
    if url != "memory://":
        with running() as server:
            found[f"ready, {options.pods} pods"] = Figure(server.ready_after, "s")
            found["resident after restart"] = Figure(server.resident_mib(), "MiB")
    return found, server.flags


def rates(server: Server, seconds: int, wanted: str = "") -> dict[str, Figure]:
    """Requests a second under load."""
    pod = json.loads(server.call("POST", PODS, POD))["metadata"]["name"]
    for number in range(500 if wanted in "LIST 500 pods" else 0):
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
    found: dict[str, Figure] = {}
    for title, (path, connections, script) in loads.items():
        if wanted not in title:
            continue
        rate = wrk(server.url + path, seconds=seconds, connections=connections, script=script)
        if rate.failed:
            raise SystemExit(f"{title}: {rate.failed} requests failed")
        found[title] = Figure(rate.per_second, "req/s")
        found[f"{title}, p99"] = Figure(milliseconds(rate.p99), "ms")
    return found


def milliseconds(text: str) -> float:
    """What wrk prints as `1.50ms`, `310.00us` or `1.02s`."""
    number, unit = float(text.rstrip("mus")), text.lstrip("0123456789.")
    return number * {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}[unit]


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


def fan_out(server: Server, watchers: int, events: int) -> dict[str, Figure]:
    """Many watchers, many events: when does each arrive?"""
    latencies, seconds = asyncio.run(_fan_out(server, watchers, events))
    latencies.sort()
    found = {f"watch, {watchers} x {events} deliveries": Figure(len(latencies) / seconds, "ev/s")}
    for part in (50, 99):
        value = latencies[min(len(latencies) - 1, len(latencies) * part // 100)]
        found[f"watch, delivery p{part}"] = Figure(value * 1000, "ms")
    return found


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
