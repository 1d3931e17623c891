"""HTTP itself: forms, limits, connections that misbehave."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime

import pytest
import yaml
from apiserver.client import Client

from pybernetes.net.http import STRANGERS_BODIES


@contextmanager
def raw(client: Client) -> Iterator[ssl.SSLSocket]:
    """A TLS connection without a client on it."""
    context = ssl.create_default_context(cafile=str(client.server.ca_file))
    assert client.address.hostname
    with (
        socket.create_connection((client.address.hostname, client.address.port or 0), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=client.address.hostname) as connection,
    ):
        yield connection


def read_answer(connection: ssl.SSLSocket) -> tuple[int, bytes]:
    """One answer with a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        assert part, f"closed after {data!r}"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    length = int(fields[b"Content-Length"])
    while len(body) < length:
        body += connection.recv(65536)
    return int(head.split()[1]), body[:length]


def test_several_requests_on_one_connection(client: Client) -> None:
    request = f"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n\r\n".encode()
    with raw(client) as connection:
        for _ in range(3):
            connection.sendall(request)
            assert read_answer(connection)[0] == 200


def test_pipelined_requests_are_answered_in_order(client: Client, namespace: str) -> None:
    paths = ["/version", f"/api/v1/namespaces/{namespace}", "/healthz", "/nope"]
    token = f"Authorization: Bearer {client.token}\r\n"
    with raw(client) as connection:
        connection.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: x\r\n{token}\r\n" for path in paths).encode())
        data = b""
        while data.count(b"HTTP/1.1 ") < 4 or b"page not found" not in data:
            part = connection.recv(65536)
            assert part
            data += part
    places = [data.index(mark) for mark in (b"gitVersion", namespace.encode(), b"\r\n\r\nok", b"page not found")]
    assert places == sorted(places)


def test_a_chunked_body_is_put_together(client: Client, namespace: str) -> None:
    body = json.dumps({"metadata": {"name": "chunked"}}).encode()
    head = (
        f"POST /api/v1/namespaces/{namespace}/configmaps HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {client.token}\r\n\r\n"
    ).encode()
    pieces = [body[:7], body[7:8], body[8:]]
    with raw(client) as connection:
        connection.sendall(head)
        for piece in pieces:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        assert read_answer(connection)[0] == 201


def test_expect_continue(client: Client, namespace: str) -> None:
    body = json.dumps({"metadata": {"name": "expected"}}).encode()
    head = (
        f"POST /api/v1/namespaces/{namespace}/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: application/json\r\nExpect: 100-continue\r\nAuthorization: Bearer {client.token}\r\n\r\n"
    ).encode()
    with raw(client) as connection:
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue")
        connection.sendall(body)
        assert read_answer(connection)[0] == 201


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\x16\x03\x01 what\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"{}\r\n\r\n",
        b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"FOO\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_400_and_is_closed(client: Client, rubbish: bytes) -> None:
    with raw(client) as connection:
        connection.sendall(rubbish)
        status, body = read_answer(connection)
        assert (status, body) == (400, b"400 Bad Request")
        assert connection.recv(100) == b""


@pytest.mark.parametrize("method", ["FOO", "get", "PURGE", "LIST", "A" * 200])
def test_unknown_methods_are_not_allowed(client: Client, namespace: str, method: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\nContent-Length: 2\r\n\r\n{{}}"
    with raw(client) as connection:
        for asked, status in ((path, 405), ("/version", 405), ("/nope", 404), ("/healthz", 200), (path, 405)):
            connection.sendall(f"{method} {asked} {head}".encode())
            assert read_answer(connection)[0] == status
        connection.sendall(f"GET {path} {head}".encode())
        assert read_answer(connection)[0] == 200


@pytest.mark.parametrize("behind", [b"{}", b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0"])
def test_a_request_is_served_once_whatever_comes_behind_it(client: Client, namespace: str, behind: bytes) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = json.dumps({"metadata": {"generateName": "once-"}})
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with raw(client) as connection:
        connection.sendall((head + body).encode() + behind)
        assert read_answer(connection)[0] == 201
        assert read_answer(connection)[0] == 400
        assert connection.recv(100) == b""
    found = client.get(path).json["items"]
    assert len([each for each in found if each["metadata"]["name"].startswith("once-")]) == 1


def test_a_body_over_three_megabytes_is_refused(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    with raw(client) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {3 * 1024 * 1024 + 1}\r\n\r\n".encode())
        status, body = read_answer(connection)
        assert (status, json.loads(body)["reason"]) == (413, "RequestEntityTooLarge")
    with raw(client) as connection:  # the same without saying so beforehand
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"10000\r\n" + b"a" * 65536 + b"\r\n"
        try:
            for _ in range(60):
                connection.sendall(piece)
        except OSError:
            pass  # the server closed before it had all
        assert read_answer(connection)[0] == 413


def test_large_bodies_of_strangers_are_bounded_and_others_are_served(client: Client, namespace: str) -> None:
    head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n"
    refused = 0
    with contextlib.ExitStack() as opened:
        for _ in range(2 * STRANGERS_BODIES // 2_900_000):
            connection = opened.enter_context(raw(client))
            try:
                connection.sendall(head.encode() + b"x" * 2_900_000)
                connection.settimeout(0.1)
                refused += read_answer(connection)[0] == 429
            except TimeoutError:
                continue  # the rest is waited for
            except OSError:
                refused += 1  # closed before all of it was sent
        assert refused >= STRANGERS_BODIES // 2_900_000 - 1
        # An authenticated connection may send large bodies all the while.
        token = f"Host: x\r\nAuthorization: Bearer {client.token}\r\n"
        connection = opened.enter_context(raw(client))
        connection.sendall(f"GET /version HTTP/1.1\r\n{token}\r\n".encode())
        assert read_answer(connection)[0] == 200
        large = json.dumps({"metadata": {"name": "large"}, "data": {"key": "x" * 900_000}}).encode()
        more = f"{token}Content-Type: application/json\r\nContent-Length: {len(large)}\r\n\r\n"
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        connection.sendall(f"POST {path} HTTP/1.1\r\n{more}".encode() + large)
        assert read_answer(connection)[0] == 201
    with raw(client) as connection:  # what they held is given back
        connection.sendall(head.encode() + b"x" * 3_000_000)
        assert read_answer(connection)[0] in (401, 403)


def test_headers_over_a_megabyte_are_refused(client: Client) -> None:
    with raw(client) as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n")
        try:
            for number in range(40):
                connection.sendall(b"X-%d: %b\r\n" % (number, b"a" * 30000))
        except OSError:
            pass
        assert read_answer(connection)[0] == 431


def test_large_answers_are_compressed_when_the_client_can(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = client.post(path, {"metadata": {"name": "big"}, "data": {"x": "y" * 300_000}})
    plain = client.get(f"{path}/big")
    packed = client.get(f"{path}/big", Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.body) < 10_000
    assert gzip.decompress(packed.body) == plain.body == made.body
    assert "Content-Encoding" not in client.get("/version", Accept_Encoding="gzip").headers
    for accepted in ("gzip;q=0", "gzip;q=1", "deflate", "*", "xgzip"):
        assert "Content-Encoding" not in client.get(f"{path}/big", Accept_Encoding=accepted).headers, accepted
    assert "Content-Encoding" in client.get(f"{path}/big", Accept_Encoding="deflate, gzip").headers


def test_yaml_in_and_out(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    text = b"metadata:\n  name: yaml\ndata:\n  one: '1'\n  date: '2024-01-01'\n"
    made = client.post(path, text, Content_Type="application/yaml", Accept="application/yaml")
    assert (made.status, made.headers["Content-Type"]) == (201, "application/yaml")
    found = yaml.safe_load(made.body)
    assert found["data"] == {"one": "1", "date": "2024-01-01"}
    bad = client.post(path, b"a: [", Content_Type="application/yaml")
    assert (bad.status, bad.json["reason"]) == (400, "BadRequest")


def test_pretty_printing(client: Client) -> None:
    assert client.get("/apis?pretty=true").body.startswith(b'{\n  "kind"')
    assert client.get("/apis", User_Agent="curl/8").body.startswith(b'{\n  "kind"')
    assert client.get("/apis?pretty=false", User_Agent="curl/8").body.startswith(b'{"kind"')
    assert client.get("/version?pretty=false").body.startswith(b'{\n  "major"')  # always


def test_media_types_that_are_not_offered(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    proto = "application/vnd.kubernetes.protobuf"
    refused = client.get(path, Accept=proto)
    assert (refused.status, refused.json["reason"]) == (406, "NotAcceptable")
    assert client.get(path, Accept=f"{proto},application/json").headers["Content-Type"] == "application/json"
    assert client.get(path, Accept="application/cbor, */*;q=0.5").status == 200
    body = client.post(f"{path}/configmaps", b"{}", Content_Type="application/cbor")
    assert (body.status, body.json["reason"]) == (415, "UnsupportedMediaType")
    assert body.message.endswith(f"accepted media types include: application/json, application/yaml, {proto}")


def test_an_unfinished_request_does_not_hold_up_others(client: Client) -> None:
    with raw(client) as stuck:
        stuck.sendall(b"GET /version HTTP/1.1\r\nHost:")
        started = time.monotonic()
        assert client.get("/version").status == 200
        assert time.monotonic() - started < 5


def test_a_watcher_that_leaves_is_forgotten(client: Client, namespace: str) -> None:
    def watchers() -> float:
        lines = client.get("/metrics").body.decode().splitlines()
        found = [line for line in lines if line.startswith('apiserver_longrunning_requests{resource="leases"')]
        return float(found[0].split()[-1]) if found else 0.0

    before = watchers()
    with client.watch(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?watch=true"):
        assert watchers() == before + 1
    deadline = time.monotonic() + 10
    while watchers() != before:
        assert time.monotonic() < deadline


def test_requests_with_equal_heads_differ_by_their_bodies(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    def message(name: str) -> bytes:
        body = json.dumps({"metadata": {"name": name}}).encode()
        return (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {client.token}\r\n\r\n"
        ).encode() + body

    with raw(client) as connection:
        for name in ("one", "two", "six"):
            connection.sendall(message(name))
            status, body = read_answer(connection)
            assert (status, json.loads(body)["metadata"]["name"]) == (201, name)
        split = message("ten")
        connection.sendall(split[:-10])  # the head is known, the body is not complete
        connection.sendall(split[-10:])
        assert json.loads(read_answer(connection)[1])["metadata"]["name"] == "ten"
        connection.sendall(message("aaa") + message("bbb") + message("ccc")[:-5])  # pipelined
        assert json.loads(read_answer(connection)[1])["metadata"]["name"] == "aaa"
        assert json.loads(read_answer(connection)[1])["metadata"]["name"] == "bbb"
        connection.sendall(message("ccc")[-5:])
        assert json.loads(read_answer(connection)[1])["metadata"]["name"] == "ccc"
        wrong = message("abc").replace(f"Bearer {client.token}".encode(), b"Bearer wrong")
        connection.sendall(wrong)
        assert read_answer(connection)[0] == 401


@pytest.mark.parametrize("path", ["/version", "/healthz"])
def test_an_audit_id_comes_back_as_it_was_sent(client: Client, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAudit-ID: é\r\nAudit-ID: other\r\n\r\n"
    with raw(client) as connection:
        connection.sendall(head.encode())
        assert "Audit-Id: é\r\n".encode() in connection.recv(65536)


def test_every_answer_has_a_date_and_an_audit_id_of_its_own(client: Client) -> None:
    answers = [client.get(path) for path in ("/api/v1/namespaces/default", "/api/v1/namespaces/none", "/version")]
    answers += [client.get("/api/v1/namespaces/default") for _ in range(3)]
    assert len({answer.headers["Audit-Id"] for answer in answers}) == len(answers)
    for answer in answers:
        assert abs(parsedate_to_datetime(answer.headers["Date"]).timestamp() - time.time()) < 5


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /version HTTP/1.1\r\n", 400),
        ("GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400),
        ("GET /version HTTP/1.1\r\nHost: a b/\r\n", 400),
        ("GET /version\r\n", 400),
        ("GET /version HTTP/2.0\r\nHost: x\r\n", 505),
        ("GET /version HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n", 417),
        ("POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
        ("POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n", 501),
        ("POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n", 400),
        ("GET /version HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n", 400),
        ("GET /version HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n", 400),
        ("GET /version HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n", 400),
        ("GET /version HTTP/1.1\nHost: x\n", 400),
        ("GET /version HTTP/1.1\r\nHost: x\r\nX: a\rY: b\r\n", 400),
        ("GET /version HTTP/1.1\r\nHost: x\r\nX: a\r\n Y: b\r\n", 400),
        ("POST /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 40\r\n", 400),
        ("GET /version HTTP/1.0\r\n", 200),
    ],
)
def test_what_a_proxy_could_read_in_another_way_ends_the_connection(client: Client, head: str, status: int) -> None:
    """Nothing behind such a head is read as a request: what is smuggled in a body never runs."""
    with raw(client) as connection:
        connection.sendall(f"{head}\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        data = b""
        while part := connection.recv(65536):
            data += part
    assert data.count(b"HTTP/1.1 ") == 1
    assert data.startswith(b"HTTP/1.1 %d " % status), data


def test_what_comes_behind_the_body_is_no_header(client: Client) -> None:
    """A proxy that takes identities out of heads does not look there."""
    with raw(client) as connection:
        connection.sendall(
            b"GET /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            b"Trailer: Authorization\r\n\r\n0\r\nAuthorization: Bearer %b\r\n\r\n" % client.token.encode()
        )
        assert read_answer(connection)[0] in (401, 403)


def test_a_refused_upgrade_loses_no_request(client: Client) -> None:
    upgrade = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    with raw(client) as connection:
        for _ in range(2):
            connection.sendall(upgrade + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            data = b""
            while b"\r\n\r\nok" not in data:
                part = connection.recv(65536)
                assert part, data
                data += part
            assert data.count(b"HTTP/1.1 200") == 2


def test_a_header_that_comes_twice_has_two_values_each_time(client: Client) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\nContent-Type: application/json\r\n"
        "Impersonate-User: jane\r\nImpersonate-Group: a\r\nImpersonate-Group: b\r\nContent-Length: 2\r\n\r\n{}"
    )
    with raw(client) as connection:
        for _ in range(3):
            connection.sendall(head.encode())
            status, body = read_answer(connection)
            assert status == 201
            assert json.loads(body)["status"]["userInfo"]["groups"] == ["a", "b", "system:authenticated"]


def test_each_of_many_pipelined_requests_is_its_own_senders_however_it_is_cut(client: Client) -> None:
    """Heads that came before are remembered as a whole; no client gets another's."""
    chance = random.Random(7)
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    for _ in range(10):
        names = [chance.choice(("jane", "joe", "jan", "janet")) for _ in range(12)]
        data = "".join(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\nImpersonate-User: {name}\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            for name in names
        ).encode()
        cuts = sorted(chance.sample(range(1, len(data)), chance.randint(0, 8)))
        with raw(client) as connection:
            for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                connection.sendall(data[begin:end])
            answers = b""
            while answers.count(b'"username":') < len(names):
                part = connection.recv(65536)
                assert part, answers
                answers += part
        assert re.findall(rb'"username":"(\w+)"', answers) == [name.encode() for name in names]
