"""Requests per second through the Ingress proxy, beside the same endpoints without it and behind nginx.

Two endpoints, the proxy and wrk are processes of their own on the loopback device. CPU is that of the proxy alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import httptools
import msgspec
import uvloop
from _load import Report, wrk

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.networking.v1 import Ingress
from pybernetes.ingress.endpoints import Endpoints
from pybernetes.ingress.forwarding import Forwarder
from pybernetes.ingress.frontend import Server
from pybernetes.ingress.metrics import Metrics
from pybernetes.ingress.routes import Routes
from pybernetes.ingress.rules import compile_ingress
from pybernetes.ingress.upstream import Pool

PORTS, PROXY, NGINX = (18081, 18082), 18080, 18083
BODY = b"x" * 1024
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
NGINX_CONF = """daemon off; worker_processes 1; pid {folder}/pid; error_log /dev/null;
events {{ worker_connections 1024; }} http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
upstream web {{ {servers} keepalive 32; }}
server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://web; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; }} }} }}"""


def measure_ingress(report: Report) -> None:
    """All rows."""
    with contextlib.ExitStack() as stack:
        for port in PORTS:
            stack.enter_context(process(serve(port)))
        direct = wrk(f"http://127.0.0.1:{PORTS[0]}/")
        report.row("ingress: one endpoint without a proxy", direct.per_second, "req/s")
        proxy = stack.enter_context(process(serve_proxy()))
        rate, cpu = loaded(proxy, PROXY)
        report.row("ingress: two endpoints, 1 KB, kept connections", rate, "req/s")
        report.row("ingress: CPU of the proxy for a request", cpu, "us")
        if shutil.which("nginx", path="/usr/sbin:/usr/bin") is not None:
            worker = stack.enter_context(nginx())
            rate, cpu = loaded(worker, NGINX)
            report.row("ingress: the same by nginx, one worker", rate, "req/s")
            report.row("ingress: CPU of nginx for a request", cpu, "us")


def loaded(pid: int, port: int) -> tuple[float, float]:
    """Requests per second, and microseconds of a process's CPU for each."""
    wrk(f"http://127.0.0.1:{port}/", seconds=1)
    before, began = used(pid), time.perf_counter()
    found = wrk(f"http://127.0.0.1:{port}/")
    seconds = time.perf_counter() - began
    return found.per_second, (used(pid) - before) * 1e6 / max(1.0, found.per_second * seconds)


def used(pid: int) -> float:
    """Seconds of CPU of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def process(main: Coroutine[Any, Any, None]) -> Iterator[int]:
    """Runs a coroutine in a process of its own, which has begun to listen."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)

        async def ready() -> None:
            asyncio.get_running_loop().call_later(0.05, os.write, writing, b"!")
            await main

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(ready())
        finally:
            os._exit(0)
    main.close()
    os.close(writing)
    try:
        os.read(reading, 1)
        yield pid
    finally:
        os.close(reading)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


async def serve(port: int) -> None:
    """An endpoint that answers a kilobyte."""
    server = await asyncio.get_running_loop().create_server(_Endpoint, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


class _Endpoint(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(ANSWER)  # type: ignore[attr-defined]


async def serve_proxy() -> None:
    """The proxy as the controller makes it, for one Ingress."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
    routes = Routes()
    metadata = {"name": "web", "namespace": "default"}
    routes.put(compile_ingress(msgspec.convert({"metadata": metadata, "spec": {"rules": rules}}, Ingress)))
    service = msgspec.convert({"spec": {"ports": [{"port": 80}]}}, Service)
    slices = [
        msgspec.convert(
            {"addressType": "IPv4", "ports": [{"port": port}], "endpoints": [{"addresses": ["127.0.0.1"]}]},
            EndpointSlice,
        )
        for port in PORTS
    ]
    endpoints = Endpoints(lambda namespace, name: service, lambda namespace, name: slices)
    proxy = Server(Forwarder(routes, endpoints, Pool(), Metrics()).serve)
    listening = await asyncio.get_running_loop().create_server(proxy, "127.0.0.1", PROXY, backlog=1024)
    await listening.serve_forever()


@contextlib.contextmanager
def nginx() -> Iterator[int]:
    """nginx with the same endpoints; its worker."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        servers = " ".join(f"server 127.0.0.1:{port};" for port in PORTS)
        config = Path(folder, "nginx.conf")
        config.write_text(NGINX_CONF.format(folder=folder, servers=servers, port=NGINX))
        started = subprocess.Popen(["/usr/sbin/nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
        try:
            children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
            while not (found := children.read_text().split()):
                time.sleep(0.05)
            yield int(found[0])
        finally:
            started.terminate()
            started.wait()
