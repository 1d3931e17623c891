"""`proxy` of pods, nodes and Services to a real HTTP server; upstream's answers to the same were compared."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.connect.place import NODE, Place, place

from pybernetes.net.streams.websocket import WebSocket, accept_key
from tools import ApiServer

PAGE = b'<html><a href="/there">there</a></html>'


@contextlib.asynccontextmanager
async def web_server() -> AsyncIterator[int]:
    """Says what it was asked, as JSON; /page is HTML, /away a redirect, /socket a WebSocket that says things back."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = lines[0].split()
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if path == "/socket":
                await _echo(reader, writer, headers)
                return
            status, kind, extra = "200 OK", "application/json", ""
            content = json.dumps({"method": method, "path": path, "headers": headers, "body": body.decode()}).encode()
            if path == "/page":
                kind, content = "text/html; charset=utf-8", PAGE
            elif path == "/away":
                status, extra = "302 Found", "Location: /there\r\n"
            elif path == "/cors":
                extra = "Access-Control-Allow-Origin: *\r\nX-Own: yes\r\n"
            elif path == "/teapot":
                status = "418 I'm a teapot"
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{extra}\r\n"
            writer.write(head.encode() + (b"" if method == "HEAD" else content))
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(serve, "0.0.0.0", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    class Wire:
        async def read(self) -> bytes:
            return await reader.read(1 << 16)

        def write(self, data: bytes) -> None:
            writer.write(data)

        async def drain(self) -> None:
            await writer.drain()

        def close(self) -> None:
            writer.close()

    key = accept_key(headers["sec-websocket-key"])
    writer.write(
        f"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {key}\r\n".encode()
    )
    writer.write(b"Sec-WebSocket-Protocol: chat\r\n\r\n")
    websocket = WebSocket(Wire())
    while (message := await websocket.receive()) is not None:
        websocket.send(message[1].upper())


@contextlib.asynccontextmanager
async def web(connected: ApiServer, tmp_path: Path) -> AsyncIterator[tuple[Place, str, int]]:
    """The place, the path of the pod's proxy, and the port of the server in it."""
    async with web_server() as port, place(connected, tmp_path) as here:
        if here.address == "127.0.0.1":
            pytest.skip("this machine has only the loopback address, which the proxy refuses")
        yield here, f"{here.pod}:{port}/proxy", port


async def test_a_request_arrives_as_it_was_sent_without_credentials(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, proxy, _):
        headers = {"X-Mine": "1", "Cookie": "c=1"}
        answer = await here.ask("POST", f"{proxy}/a%20b/c?x=1&x=2", {"some": "thing"}, **headers)
        assert answer.status == 200
        got = answer.json
        assert (got["method"], got["path"], got["body"]) == ("POST", "/a%20b/c?x=1&x=2", '{"some": "thing"}')
        assert got["headers"]["x-mine"] == "1"
        assert got["headers"]["cookie"] == "c=1"
        assert got["headers"]["x-forwarded-uri"] == f"{proxy}/a%20b/c"
        assert got["headers"]["x-forwarded-for"] == "127.0.0.1"
        assert "authorization" not in got["headers"]


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
async def test_all_methods_go_through(connected: ApiServer, tmp_path: Path, method: str) -> None:
    async with web(connected, tmp_path) as (here, proxy, _):
        answer = await here.ask(method, f"{proxy}/x")
        assert answer.status == 200
        assert method == "HEAD" or answer.json["method"] == method


async def test_answers_come_back_so_that_a_browser_stays_here(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, proxy, _):
        answer = await here.ask("GET", f"{proxy}/away")
        assert (answer.status, answer.headers["Location"]) == (302, f"{proxy}/there")
        answer = await here.ask("GET", f"{proxy}/page")
        assert answer.body == f'<html><a href="{proxy}/there">there</a></html>'.encode()
        answer = await here.ask("GET", f"{proxy}/cors")
        assert answer.headers["X-Own"] == "yes"
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert (await here.ask("GET", f"{proxy}/teapot")).status == 418


async def test_no_path_is_the_servers_root(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, proxy, _):
        answer = await here.ask("GET", f"{proxy}?x=1")
        assert (answer.status, answer.headers["Location"]) == (301, f"{proxy}/?x=1")
        assert (await here.ask("GET", f"{proxy}/")).json["path"] == "/"
        assert (await here.ask("GET", f"{proxy}/../../../x")).json["path"] == "/x"


async def test_websockets_go_through(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, proxy, _), asyncio.timeout(30):
        websocket = await here.websocket(f"{proxy}/socket", "chat")
        websocket.send(b"hello")
        message = await websocket.receive()
        assert message is not None
        assert message[1] == b"HELLO"
        websocket.close()


@pytest.mark.parametrize(
    ("id", "status", "message"),
    [
        ("ftp:web:80", 400, 'invalid pod request "ftp:web:80"'),
        ("a:b:c:d", 400, 'invalid pod request "a:b:c:d"'),
        ("none:80", 404, 'pods "none" not found'),
        ("web:1", 503, "error trying to reach service: dial tcp {address}:1: connect: connection refused"),
    ],
)
async def test_names_that_lead_nowhere(
    connected: ApiServer, tmp_path: Path, id: str, status: int, message: str
) -> None:
    async with web(connected, tmp_path) as (here, _, _):
        answer = await here.ask("GET", f"/api/v1/namespaces/default/pods/{id}/proxy/")
        assert (answer.status, answer.message) == (status, message.format(address=here.address))


async def test_the_proxy_refuses_the_servers_own_machine(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, proxy, _):
        for address in ("127.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1"):
            status = {"podIP": address, "podIPs": [{"ip": address}]}
            pod = (await here.ask("GET", here.pod)).json
            assert (await here.ask("PUT", f"{here.pod}/status", {**pod, "status": status})).status == 200
            answer = await here.ask("GET", f"{proxy}/")
            assert (answer.status, answer.message) == (400, "address not allowed")


async def test_no_node_leads_to_the_servers_own_machine(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, _, port):
        await here.ask("POST", "/api/v1/nodes", {"metadata": {"name": "trick"}})
        for address in ("127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "0177.0.0.1", "2130706433"):
            node = (await here.ask("GET", "/api/v1/nodes/trick")).json
            kinds = ("Hostname", "InternalIP")
            node["status"] = {"addresses": [{"type": kind, "address": address} for kind in kinds]}
            assert (await here.ask("PUT", "/api/v1/nodes/trick/status", node)).status == 200
            for name in ("trick", f"trick:{port}"):
                answer = await here.ask("GET", f"/api/v1/nodes/{name}/proxy/")
                assert (answer.status, answer.message) == (400, "address not allowed"), address


async def test_a_nodes_kubelet_and_its_other_ports(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, _, port):
        node = f"/api/v1/nodes/{NODE}"
        assert (await here.ask("GET", f"{node}/proxy/healthz")).body == b"ok"
        assert (await here.ask("GET", f"{node}:{here.kubelet.port}/proxy/healthz")).body == b"ok"
        assert (await here.ask("GET", f"{node}:{port}/proxy/x")).json["path"] == "/x"
        assert (await here.ask("GET", f"{node}/proxy/none")).status == 404
        answer = await here.ask("GET", "/api/v1/nodes/none/proxy/")
        assert (answer.status, answer.message) == (404, 'nodes "none" not found')


async def test_a_service_is_one_of_its_pods_and_nothing_else(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, _, port):
        base = "/api/v1/namespaces/default"
        spec = {"ports": [{"name": "http", "port": 80}, {"name": "other", "port": 81}]}
        await here.ask("POST", f"{base}/services", {"metadata": {"name": "front"}, "spec": spec})
        try:
            await _endpoints(here, port, {"kind": "Pod", "name": "web", "namespace": "default"})
            for id in ("front:http", "front:80", "http:front:http"):
                assert (await here.ask("GET", f"{base}/services/{id}/proxy/x")).json["path"] == "/x"
            answer = await here.ask("GET", f"{base}/services/front:82/proxy/x")
            assert (answer.status, answer.message) == (503, 'no service port 82 found for service "front"')
            answer = await here.ask("GET", f"{base}/services/front:81/proxy/x")
            assert (answer.status, answer.message) == (503, 'no endpoints available for service "front:81"')
            await _endpoints(here, port, None)
            answer = await here.ask("GET", f"{base}/services/front:http/proxy/x")
            assert (answer.status, answer.message) == (503, 'no endpoints available for service "front:http"')
        finally:
            await here.ask("DELETE", f"{base}/services/front")
            await here.ask("DELETE", f"{base}/endpoints/front")


async def _endpoints(here: Place, port: int, target: Any) -> None:
    address = {"ip": here.address, **({"targetRef": target} if target else {})}
    subsets = [{"addresses": [address], "ports": [{"name": "http", "port": port}]}]
    base = "/api/v1/namespaces/default/endpoints"
    body = {"metadata": {"name": "front"}, "subsets": subsets}
    answer = await here.ask("PUT", f"{base}/front", body)
    if answer.status == 404:
        answer = await here.ask("POST", base, body)
    assert answer.status < 300, answer.body


async def test_what_is_said_through_a_proxy_is_not_in_the_audit_log(connected: ApiServer, tmp_path: Path) -> None:
    async with web(connected, tmp_path) as (here, path, _):
        for target in ("/hidden", "/teapot"):
            await here.ask("POST", f"{path}{target}", {"password": "sesame"}, User_Agent="through")
        await here.ask("POST", f"{here.pod}none/proxy/", {"password": "sesame"}, User_Agent="through")
    lines = (connected.folder / "pki" / "audit.log").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event.get("userAgent") == "through"]
    ends = [event for event in events if event["stage"] == "ResponseComplete"]
    assert [event["responseStatus"]["code"] for event in ends] == [200, 418, 404]
    assert "sesame" not in str(events)
    assert ["responseObject" in event for event in ends] == [False, False, True]
