"""The proxy by which those without a way out reach other networks."""

from __future__ import annotations

import socket
import threading

import pytest

from pybernetes.cluster.rootless import wayout


@pytest.mark.parametrize(
    ("address", "reachable"),
    [
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
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
