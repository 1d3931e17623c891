"""Whatever a server, a proxy or a pipe does, kubectl ends with one line in plain words and exit code 1."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KUBECTL = [sys.executable, "-I", str(Path(__file__).parents[2] / "src/pybernetes/kubectl/entry.py")]


class Peer:
    """A server on a port of its own that gives the same bytes to every connection and closes it."""

    def __init__(self, answer: bytes, context: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._context is not None:
                    connection = self._context.wrap_socket(connection, server_side=True)
                connection.settimeout(10)
                connection.recv(65536)
                connection.sendall(self._answer)
            except OSError:
                pass
            finally:
                connection.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def run(tmp_path: Path, *argv: str, **environment: str) -> tuple[str, str, int]:
    done = subprocess.run(
        [*KUBECTL, *argv],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.stdout, done.stderr, done.returncode


def _json(body: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


ANSWERS = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    "no number": b"HTTP/1.1 abc OK\r\n\r\n",
    "head cut": b"HTTP/1.1 200 OK\r\nContent-Le",
    "bad length": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
    "body cut": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
    "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "bad gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    "a page": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>",
    "a list": _json("[1, 2]"),
    "a number": _json("7"),
    "null": _json("null"),
    "empty object": _json("{}"),
    "items of odd kinds": _json('{"kind": "PodList", "apiVersion": "v1", "metadata": 3, "items": [null, 5]}'),
    "rows of odd kinds": _json('{"kind": "Table", "columnDefinitions": [3], "rows": [{"cells": 4}]}'),
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: ftp://x\r\nContent-Length: 0\r\n\r\n",
    "gateway": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_server_that_is_no_api_server_gives_one_line(answer: bytes, tmp_path: Path) -> None:
    peer = Peer(answer)
    server = f"http://127.0.0.1:{peer.port}"
    try:
        for argv in (
            ["get", "pods"],
            ["get", "--raw", "/api/v1/pods?watch=1"],
            ["describe", "pod", "x"],
            ["api-resources"],
            ["logs", "x"],
            ["version"],
        ):
            _, stderr, code = run(tmp_path, "--server", server, *argv)
            assert "Traceback" not in stderr, f"{argv}: {stderr}"
            assert len(stderr.splitlines()) <= 2, f"{argv}: {stderr}"
            assert code in (0, 1), argv
            assert code == 0 or stderr, argv
    finally:
        peer.close()


@pytest.fixture
def expired(tmp_path: Path) -> Iterator[Peer]:
    """A TLS server whose certificate, for the name `elsewhere`, ended an hour ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "elsewhere")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=2))
        .not_valid_after(now - timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("elsewhere")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "expired.crt").write_bytes(certificate.public_bytes(pem))
    (tmp_path / "expired.key").write_bytes(secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "expired.crt", tmp_path / "expired.key")
    peer = Peer(b"", context)
    yield peer
    peer.close()


def test_an_expired_certificate_is_named_with_its_time(expired: Peer, tmp_path: Path) -> None:
    server = f"https://127.0.0.1:{expired.port}"
    ca = str(tmp_path / "expired.crt")
    stdout, stderr, code = run(tmp_path, "--server", server, "--certificate-authority", ca, "get", "pods")
    assert (stdout, code) == ("", 1)
    assert stderr.startswith(
        "Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired or is not"
        " yet valid: current time "
    )
    assert " is after 20" in stderr
    assert len(stderr.splitlines()) == 1


def test_a_proxy_that_refuses_or_lies_gives_one_line(tmp_path: Path) -> None:
    for answer in (b"", b"HTTP/1.1 403 Forbidden\r\n\r\n", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nno TLS here"):
        peer = Peer(answer)
        proxy = f"http://127.0.0.1:{peer.port}"
        _, stderr, code = run(tmp_path, "--server", "https://example.invalid", "get", "pods", HTTPS_PROXY=proxy)
        peer.close()
        assert (len(stderr.splitlines()), code) == (1, 1), stderr
        assert "Traceback" not in stderr


def test_a_reader_that_went_away_and_a_full_disk_give_no_traceback(tmp_path: Path) -> None:
    for sink in ("/dev/full", None):
        read, write = os.pipe()
        os.close(read)
        target = os.open(sink, os.O_WRONLY) if sink else write
        done = subprocess.run(
            [*KUBECTL, "options"], stdout=target, stderr=subprocess.PIPE, env={"HOME": str(tmp_path)}, timeout=30
        )
        assert done.returncode in (1, -signal.SIGPIPE)
        assert b"Traceback" not in done.stderr


def test_ctrl_c_ends_a_request_at_once(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    process = subprocess.Popen(
        [*KUBECTL, "--server", f"http://127.0.0.1:{listener.getsockname()[1]}", "get", "pods"],
        env={"HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    connection, _ = listener.accept()
    connection.recv(1000)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    connection.close()
    listener.close()
    assert (process.returncode, stderr) == (130, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_give_no_traceback(closed: str, tmp_path: Path) -> None:
    with open(tmp_path / "kept", "wb") as kept:
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *KUBECTL, "config", "view", "--kubeconfig=/dev/null"],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            stdout=kept,
            stderr=kept,
            timeout=30,
        )
    assert done.returncode == 0
    assert "Traceback" not in (tmp_path / "kept").read_text()
