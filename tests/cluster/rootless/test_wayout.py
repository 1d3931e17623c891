"""The proxy by which those without a way out reach other networks."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from pybernetes.cluster.rootless import wayout


@pytest.mark.parametrize(
    ("address", "reachable"),
    [
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("::127.0.0.1", False),
        ("64:ff9b::127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("::ffff:169.254.169.254", False),
        ("0.0.0.0", False),
        ("::", False),
        ("169.254.169.254", False),
        ("fe80::1%eth0", False),
        ("224.0.0.1", False),
        ("192.168.1.7", True),
        ("203.0.113.9", True),
        ("2001:db8::1", True),
    ],
)
def test_what_is_this_machines_own_is_not_reached(address: str, reachable: bool) -> None:
    assert wayout.reachable(address) is reachable


def ask(request: bytes) -> bytes:
    """What the proxy answers, and what comes after that."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wayout.serve(listener.dup())
        with socket.create_connection(listener.getsockname(), timeout=10) as client:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while data := client.recv(4096):
                answer += data
    return answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT localhost:22 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT nowhere HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT nowhere.invalid:1 HTTP/1.1\r\n\r\n", b"502"),
        (b"CONNECT [::1]:99999 HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://example.com/ HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense", b"400"),
        (b"x" * 20_480, b"400"),
    ],
)
def test_what_it_does_not_do_it_says(request_: bytes, status: bytes) -> None:
    assert ask(request_).split(b" ")[1] == status


def test_both_sides_are_joined_until_both_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wayout, "reachable", lambda _: True)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def echo() -> None:
            connection, _ = server.accept()
            with connection:
                received = b""
                while data := connection.recv(4096):
                    received += data
                connection.sendall(received[::-1])

        threading.Thread(target=echo, daemon=True).start()
        port = server.getsockname()[1]
        answer = ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\nabc".encode())
    assert answer == b"HTTP/1.1 200 OK\r\n\r\ncba"


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A server in another network, as far as the proxy knows, that accepts and says nothing."""
    monkeypatch.setattr(wayout, "reachable", lambda _: True)
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield server


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.setattr(wayout, "_MOST", 2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wayout.serve(listener.dup())
        yield listener


def tunnel(proxy: socket.socket, server: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of one."""
    client = socket.create_connection(proxy.getsockname(), timeout=10)
    client.sendall(f"CONNECT 127.0.0.1:{server.getsockname()[1]} HTTP/1.1\r\n\r\n".encode())
    assert client.recv(4096) == b"HTTP/1.1 200 OK\r\n\r\n"
    return client, server.accept()[0]


def test_a_tunnel_in_which_nothing_is_said_in_either_direction_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wayout, "_SILENCE", 0.02)
    (client, near), (far, server) = socket.socketpair(), socket.socketpair()
    with client, near, far, server:
        subject = wayout._Tunnel(near, far)
        subject.heard = time.monotonic() + 3600.0  # as if the other direction were busy
        running = threading.Thread(target=subject.run, daemon=True)
        running.start()
        time.sleep(0.1)  # five times as long as one direction waits
        server.settimeout(10)
        client.settimeout(10)
        server.sendall(b"x")
        assert client.recv(1) == b"x"
        assert (client.recv(1), server.recv(1)) == (b"", b"")
        running.join(10)
        assert not running.is_alive()


def test_the_most_silent_one_gives_way_when_there_is_no_room(
    others: socket.socket, proxy: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wayout, "_GIVES_WAY", 0.0)
    monkeypatch.setattr(wayout, "_TIMEOUT", 10.0)
    first, second = tunnel(proxy, others), tunnel(proxy, others)
    first[0].sendall(b"x")
    assert first[1].recv(1) == b"x"
    third = tunnel(proxy, others)
    assert second[0].recv(1) == b""
    for client, server in (first, third):
        client.sendall(b"y")
        assert server.recv(1) == b"y"
    for each in (*first, *second, *third):
        each.close()


def test_if_all_connections_are_busy_a_new_one_gets_an_error(
    others: socket.socket, proxy: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tunnel(proxy, others), tunnel(proxy, others)
    monkeypatch.setattr(wayout, "_TIMEOUT", 0.05)
    with socket.create_connection(proxy.getsockname(), timeout=10) as late:
        assert late.recv(4096).startswith(b"HTTP/1.1 503 Too Many Connections\r\n")
    for each in first:  # a place is free again
        each.close()
    monkeypatch.setattr(wayout, "_TIMEOUT", 10.0)
    third = tunnel(proxy, others)
    for each in (*second, *third):
        each.close()
