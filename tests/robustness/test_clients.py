"""Clients that are slow, gone, many, or malicious cost the server little and other clients nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import select
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from robustness.harness import CONFIGMAPS, LIMITED, TOKEN, Answer, Server, running

from tools import wait_until

MB = 1 << 20
HEAD = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pki: Path) -> Iterator[Server]:
    """With 20 MB of ConfigMaps in the namespace kube-public."""
    timeouts = {"header": 1.0, "request": 2.0, "idle": 3.0, "write": 1.0}
    impatient = Server(tmp_path_factory.mktemp("clients"), pki, "memory://", timeouts=timeouts)
    with running(impatient) as each, each.session() as session:
        for number in range(40):
            body = {"metadata": {"name": f"big-{number}"}, "data": {"x": "x" * (MB // 2)}}
            assert session("POST", LARGE, body).status == 201
        yield each


LARGE = "/api/v1/namespaces/kube-public/configmaps"


def closed(connection: ssl.SSLSocket) -> bool:
    """Read on until the server closes; False if it does not in time."""
    try:
        while connection.recv(MB):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def open_sockets(server: Server) -> int:
    """Connections of the server beside the one that asks."""
    return int(server.metric("process_open_fds"))


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (b"", 3.0),
        (b"GET /ver", 1.0),
        (b"GET /version HTTP/1.1\r\nHost: x\r\n", 1.0),
        (b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", 2.0),
        (b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", 2.0),
    ],
    ids=["nothing", "half a line", "half a head", "half a body", "half a chunk"],
)
def test_a_client_that_never_finishes_its_request_is_cut_off(server: Server, sent: bytes, seconds: float) -> None:
    with server.connect() as connection:
        connection.sendall(sent)
        started = time.monotonic()
        assert closed(connection)
        assert time.monotonic() - started > seconds / 2


def test_a_client_that_drips_its_head_byte_by_byte_is_cut_off(server: Server) -> None:
    with server.connect() as connection:
        started = time.monotonic()
        with pytest.raises(OSError, match=r".*"):  # noqa: PT012 - whichever write comes after the end
            for byte in b"GET /version HTTP/1.1\r\nX-Slow: " + b"x" * 1000:
                connection.sendall(bytes([byte]))
                time.sleep(0.05)
        assert time.monotonic() - started < 30  # all of it takes a minute


def test_a_tls_handshake_that_never_ends_holds_up_no_other_client(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        plain.sendall(b"\x16\x03\x01")
        assert server.request("GET", "/version").status == 200


def test_a_client_that_never_reads_its_list_is_cut_off_and_its_answer_freed(server: Server) -> None:
    before, sockets = server.memory(), open_sockets(server)
    stuck = [server.connect() for _ in range(8)]
    try:
        for connection in stuck:
            connection.sendall(f"GET {LARGE} {HEAD}\r\n".encode())
        wait_until(lambda: open_sockets(server) == sockets, "they are cut off")
        assert all(closed(connection) for connection in stuck)
    finally:
        for connection in stuck:
            connection.close()
    # 8 answers of 20 MB were made; the allocator may keep one or two.
    wait_until(lambda: server.memory() - before < 60 * MB, f"memory is given back: {server.memory() - before}")
    assert server.request("GET", LARGE).status == 200


def test_a_watcher_that_never_reads_is_cut_off(server: Server) -> None:
    watchers = server.metric("apiserver_longrunning_requests", resource="configmaps")
    with server.connect() as connection:
        connection.sendall(f"GET {LARGE}?watch=true {HEAD}\r\n".encode())
        wait_until(
            lambda: server.metric("apiserver_longrunning_requests", resource="configmaps") == watchers + 1, "it watches"
        )
        wait_until(
            lambda: server.metric("apiserver_longrunning_requests", resource="configmaps") == watchers, "it is cut off"
        )
        assert closed(connection)


def test_a_slow_reader_who_takes_a_little_now_and_then_gets_everything(server: Server) -> None:
    whole = server.request("GET", LARGE).body
    with server.connect() as connection:
        connection.sendall(f"GET {LARGE} {HEAD}Connection: close\r\n\r\n".encode())
        data = bytearray()
        started = time.monotonic()
        while part := connection.recv(MB):
            data += part
            if time.monotonic() - started < 3:  # three times the timeout
                time.sleep(0.1)
    assert bytes(data.partition(b"\r\n\r\n")[2]) == whole


def abandon(connection: ssl.SSLSocket) -> None:
    """Go away without a word: the other side gets a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket.close(connection)


@pytest.mark.parametrize("polite", [True, False], ids=["closes", "resets"])
@pytest.mark.parametrize(
    "request_line",
    [
        f"GET {LARGE} {HEAD}\r\n",
        f"GET {LARGE}?watch=true {HEAD}\r\n",
        f"GET {CONFIGMAPS}?watch=true&resourceVersion=999999999 {HEAD}\r\n",
        f"GET {CONFIGMAPS}?resourceVersion=999999999 {HEAD}\r\n",
        f"POST {CONFIGMAPS} {HEAD}Content-Length: 3000000\r\n\r\n" + "x" * 100_000,
    ],
    ids=["list", "watch", "watch to come", "list to come", "post"],
)
def test_a_client_that_leaves_frees_what_it_held(server: Server, request_line: str, polite: bool) -> None:
    sockets = open_sockets(server)
    watchers = server.metric("apiserver_longrunning_requests")
    before = server.memory()
    for _ in range(2):
        connections = [server.connect() for _ in range(8)]
        for connection in connections:
            connection.sendall(request_line.encode())
        for connection in connections:
            connection.recv(100) if request_line.startswith(f"GET {LARGE}") else None
            connection.close() if polite else abandon(connection)
    wait_until(lambda: open_sockets(server) <= sockets, "the connections are gone")
    assert server.metric("apiserver_longrunning_requests") == watchers
    wait_until(lambda: server.metric("apiserver_current_inflight_requests") == 1, "nothing but this is in flight")
    wait_until(lambda: server.memory() - before < 60 * MB, f"memory is given back: {server.memory() - before}")


def test_a_thousand_idle_connections_cost_little(tmp_path: Path, pki: Path) -> None:
    with running(Server(tmp_path, pki, "memory://")) as server:
        before = server.memory()
        with ThreadPoolExecutor(8) as pool:
            connections = list(pool.map(lambda _: server.connect(), range(1000)))
        try:
            for connection in connections:
                connection.sendall(f"GET /version {HEAD}\r\n".encode())
            for connection in connections:
                assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            each = (server.memory() - before) / 1000
            print(f"{each / 1024:.0f} KB each")
            assert each < 100 * 1024
            started = time.monotonic()
            assert server.terminate() == 0
            assert time.monotonic() - started < 20  # none of them has the minute of requests in flight
        finally:
            for connection in connections:
                connection.close()


def test_requests_beyond_the_limit_get_429_and_retry_after_until_there_is_room(tmp_path: Path, pki: Path) -> None:
    flags = ("--max-requests-inflight=3", "--enable-priority-and-fairness=false")
    server = Server(tmp_path, pki, "memory://", *flags)
    with running(server), contextlib.ExitStack() as stack:

        def refusal() -> Answer | None:
            """Of a fourth request, while three wait for three seconds, for a revision to come."""
            for _ in range(3):
                waiting = stack.enter_context(server.connect())
                request = f"GET {CONFIGMAPS}?resourceVersion=999999999 {HEAD}\r\n".replace(TOKEN, LIMITED)
                waiting.sendall(request.encode())
            answers = (server.request("GET", CONFIGMAPS, token=LIMITED) for _ in range(50))
            return next((each for each in answers if each.status == 429), None)

        refused = wait_until(refusal, "there is no room")
        assert refused.headers["Retry-After"] == "1"
        assert refused.json["reason"] == "TooManyRequests"
        body = {"metadata": {"name": "limited"}}
        assert server.request("POST", CONFIGMAPS, body, token=LIMITED).status == 201  # writes have a limit of their own
        assert server.request("GET", CONFIGMAPS).status == 200  # an administrator always gets an answer
        wait_until(lambda: server.request("GET", CONFIGMAPS, token=LIMITED).status == 200, "there is room again")


def nonsense(share: int = 1) -> dict[str, bytes]:
    """Three megabytes, or a hundred thousand levels, of what is no ConfigMap; or a share of that."""
    size, depth, many = 3 * MB // share - 100, 100_000, 100_000 // share
    numbers = random.Random(7)
    return {
        "deep lists": b"[" * depth + b"]" * depth,
        "deep objects": b'{"a":' * depth + b"1" + b"}" * depth,
        "open lists": b"[" * size,
        "open objects": b'{"a":' * (size // 5),
        "deep data": b'{"metadata":{"name":"x"},"data":' + b"[" * depth + b"]" * depth + b"}",
        "deep unknown": b'{"metadata":{"name":"x"},"what":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}",
        "zeros": bytes(size),
        "noise": numbers.randbytes(size),
        "a number": b"9" * size,
        "a small number": b"1e-" + b"9" * size,
        "a string": b'"' + b"a" * (size - 2) + b'"',
        "an open string": b'"' + b"a" * size,
        "escapes": b'"' + b"\\u0000" * (size // 6) + b'"',
        "surrogates": b'{"metadata":{"name":"' + b"\\ud800" * 1000 + b'"}}',
        "backslashes": b'"' + b"\\" * size,
        "bad utf-8": b'{"metadata":{"name":"' + b"\xff" * 1000 + b'"}}',
        "commas": b"[" + b"," * size,
        "many keys": b"{" + b",".join(b'"k%d":0' % number for number in range(2 * many)) + b"}",
        "the same key": b'{"metadata":{"name":"x"},"data":{' + b'"k":"",' * (size // 10) + b'"k":""}}',
        "many items": b"[" + b"0," * (size // 3) + b"0]",
        "many labels": b'{"metadata":{"name":"x","labels":{'
        + b",".join(b'"k%d":"-"' % number for number in range(many))
        + b"}}}",
        "many owners": b'{"metadata":{"name":"x","ownerReferences":[' + b"{}," * many + b"{}]}}",
        "a huge name": b'{"metadata":{"name":"' + b"a" * (size - 100) + b'"}}',
        "blanks": b" " * size,
        "nothing": b"",
        "null": b"null",
    }


http.client._MAXHEADERS = 1000  # type: ignore[attr-defined]  # there may be more warnings than it would read

PATCHES = ("application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json")


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, pki: Path) -> Iterator[Server]:
    """With the timeouts that it has by itself."""
    with running(Server(tmp_path_factory.mktemp("patient"), pki, "memory://")) as each:
        yield each


@pytest.mark.parametrize("kind", nonsense())
def test_nonsense_is_refused_with_a_status_and_never_a_5xx(patient: Server, kind: str) -> None:
    server = patient
    path = f"{CONFIGMAPS}/victim"
    pods = "/api/v1/namespaces/default/pods"
    server.request("POST", CONFIGMAPS, {"metadata": {"name": "victim"}})
    calls = [
        ("PUT", path, "application/json"),
        ("POST", pods, "application/json"),
        ("DELETE", f"{pods}/none", "application/json"),
        ("POST", CONFIGMAPS, "application/yaml"),
        ("PATCH", f"{path}?fieldManager=x", "application/apply-patch+yaml"),
        *(("PATCH", path, media) for media in PATCHES),
    ]
    small = nonsense(share=30)[kind]
    tries = [("POST", CONFIGMAPS, "application/json", nonsense()[kind]), *((*call, small) for call in calls)]
    with server.session() as session:
        for method, where, media, body in tries:
            before = server.cpu_seconds()
            answer = session(method, where, body, Content_Type=media)
            took = server.cpu_seconds() - before
            assert answer.status < 500, (method, where, media, answer.status, answer.body[:300])
            assert took < 8, (method, where, media, took)
            if answer.status >= 400:
                assert answer.json["kind"] == "Status"
            if answer.headers.get("Connection") == "close":
                session.connection.close()
    assert server.request("GET", "/readyz").status == 200


def test_nonsense_leaves_no_trace_in_the_metrics(server: Server) -> None:
    def ask(number: int) -> None:
        for token in (TOKEN, "wrong"):
            with server.session(token) as session:
                for path in (
                    f"/what{number}",
                    f"/apis/g{number}/v1/x",
                    f"/apis/apps/v{number}/x",
                    f"/api/v1/r{number}",
                    f"/api/v1/namespaces/default/pods/p/s{number}",
                    f"/healthz/c{number}",
                    f"{CONFIGMAPS}?dryRun=d{number}",
                ):
                    assert 200 <= session("GET", path).status < 500
                assert 400 <= session("POST", f"{CONFIGMAPS}?dryRun=d{number}", {}).status < 500

    def series() -> int:
        return server.request("GET", "/metrics").body.count(b"\napiserver_request_total{")

    ask(0)
    series()  # asking makes one itself
    before = series()
    for number in range(1, 10):
        ask(number)
    assert series() == before


def test_random_bytes_on_the_wire_get_400_or_a_closed_connection(server: Server, run_seed: int) -> None:
    numbers = random.Random(run_seed)
    for _ in range(30):
        with server.connect() as connection, contextlib.suppress(OSError):
            connection.sendall(numbers.randbytes(numbers.randrange(1, 5000)) + b"\r\n\r\n")
            answer = connection.recv(MB)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400"), answer
    assert server.request("GET", "/version").status == 200


def test_what_is_no_request_waits_for_the_requests_before_it(server: Server) -> None:
    body = json.dumps({"metadata": {"name": "before-rubbish"}}).encode()
    with server.connect() as connection:
        request = f"POST {CONFIGMAPS} {HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body
        connection.sendall(request + b"rubbish\r\n\r\n")
        data = b""
        while part := connection.recv(MB):
            data += part
    assert [data.split(b" ", 2)[1], data.count(b"HTTP/1.1 400")] == [b"201", 1]


def test_many_pipelined_requests_are_all_answered_and_do_not_pile_up(server: Server) -> None:
    before = server.memory()
    count = 20_000
    request = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
    with server.connect() as connection:
        connection.setblocking(False)  # one thread: a TLS connection is not made for two at once
        unsent, seen, rest = memoryview(request * count), 0, b""
        while seen < count:
            if not connection.pending():
                select.select([connection], [connection] if unsent else [], [], 30)
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                unsent = unsent[connection.send(unsent[:MB]) :] if unsent else unsent
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                part = connection.recv(MB)
                assert part
                rest += part
                seen += rest.count(b"HTTP/1.1 200")
                rest = rest[-11:] if not rest.endswith(b"HTTP/1.1 200") else b""
    assert server.memory() - before < 40 * MB
