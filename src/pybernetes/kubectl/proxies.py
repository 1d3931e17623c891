"""Connections through a proxy: HTTP CONNECT and SOCKS5, and the hosts that need none ($NO_PROXY)."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def excluded(host: str, port: int) -> bool:
    """Whether $NO_PROXY names the host, a domain above it, or a network it is in."""
    value = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    host = host.strip("[]").lower()
    for entry in (each.strip().lower() for each in value.split(",")):
        if not entry:
            continue
        if entry == "*" or entry in (host, f"{host}:{port}"):
            return True
        if "/" in entry:
            import ipaddress

            try:
                if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                pass
        elif host.endswith("." + entry.lstrip("*").lstrip(".")):
            return True
    return False


def connect_through(proxy: str, host: str, port: int, connect: Callable[[str, int, float], Any], timeout: float) -> Any:
    """A socket to the host by way of the proxy. Raises OSError."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    default = {"http": 80, "https": 443}.get(parts.scheme, 1080)
    sock = connect(parts.hostname or "", parts.port or default, timeout)
    if parts.scheme.startswith("socks5"):
        _socks(sock, host, port)
        return sock
    head = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
    if parts.username:
        from binascii import b2a_base64

        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        head.append("Proxy-Authorization: Basic " + b2a_base64(pair, newline=False).decode())
    sock.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = sock.recv(1)
        if not piece:
            raise OSError("unexpected EOF from the proxy")
        answer += piece
        if len(answer) > 65536:
            raise OSError("proxy sent no HTTP response")
    words = answer.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    if len(words) < 2 or words[1] != "200":
        raise OSError(" ".join(words[1:]) or "malformed response of the proxy")
    return sock


def _exactly(sock: Any, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = sock.recv(count - len(found))
        if not piece:
            raise OSError("socks connect: unexpected EOF")
        found += piece
    return found


def _socks(sock: Any, host: str, port: int) -> None:
    sock.sendall(b"\x05\x01\x00")
    if _exactly(sock, 2) != b"\x05\x00":
        raise OSError("socks connect: no acceptable authentication methods")
    name = host.strip("[]").encode()
    sock.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
    _, code, _, kind = _exactly(sock, 4)
    if code:
        raise OSError(f"socks connect: error {code}")
    _exactly(sock, {1: 4, 4: 16}.get(kind) or _exactly(sock, 1)[0])
    _exactly(sock, 2)
