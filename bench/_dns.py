"""The part of `./pyb bench network` that asks cluster DNS: queries per second, and how long one takes.

The server has a process of its own with the names of 10,000 Services, the client is this one: together they keep two
processors busy.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import time

from _load import Report

from pybernetes.dns.message import A, address_record
from pybernetes.dns.pods import PodNames
from pybernetes.dns.resolver import Chain, Resolver
from pybernetes.dns.server import DNSServer
from pybernetes.dns.zone import Zone

SERVICES = 10_000
ASKED = 100
"""Different names that are asked for."""
WINDOW = 64
"""Queries that are under way at a time."""
SECONDS = 3.0
ONE_BY_ONE = 5_000


def measure_dns(report: Report) -> None:
    """Queries per second, and the time of one query that has the server for itself."""
    ready, told = os.pipe()
    server = os.fork()
    if not server:
        try:
            asyncio.run(_serve(told))
        finally:
            os._exit(0)
    try:
        (port,) = struct.unpack("=I", os.read(ready, 4))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", port))
            client.settimeout(5.0)
            queries = [_query(number) for number in range(ASKED)]
            _flood(client, queries, 0.5)
            report.row(f"DNS, {SERVICES:,} Services: queries", _flood(client, queries, SECONDS), "/s")
            times = sorted(_one(client, queries[number % ASKED]) for number in range(ONE_BY_ONE))
        report.row("DNS: one query p50", times[ONE_BY_ONE // 2] * 1e6, "us")
        report.row("DNS: one query p99", times[ONE_BY_ONE * 99 // 100] * 1e6, "us")
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


async def _serve(told: int) -> None:
    zone = Zone("cluster.local", 30)
    for number in range(SERVICES):
        address = f"10.{96 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
        zone.replace(f"default/s{number}", [address_record(_name(number), 30, address)])
    server = DNSServer(Resolver({"": Chain(zone)}, PodNames()))
    os.write(told, struct.pack("=I", await server.start("127.0.0.1", 0)))
    await asyncio.Event().wait()


def _name(number: int) -> str:
    return f"s{number}.default.svc.cluster.local"


def _query(number: int) -> bytes:
    labels = b"".join(bytes((len(each),)) + each.encode() for each in _name(number).split("."))
    return struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", A, 1)


def _flood(client: socket.socket, queries: list[bytes], seconds: float) -> float:
    """Answers per second, with a window of queries under way."""
    send, receive, count = client.send, client.recv, 0
    for number in range(WINDOW):
        send(queries[number % ASKED])
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for number in range(ASKED):
            receive(512)
            send(queries[number])
        count += ASKED
    took = time.perf_counter() - began
    for _ in range(WINDOW):
        receive(512)
    return count / took


def _one(client: socket.socket, query: bytes) -> float:
    began = time.perf_counter()
    client.send(query)
    client.recv(512)
    return time.perf_counter() - began
