"""An API server in the test's own process, whose parts a test can replace or count."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pybernetes.apiserver.options import parse
from pybernetes.apiserver.server import APIServer

TOKEN = "of-an-administrator"
PATIENCE = 60.0
"""Seconds for an answer, or for the next line of a watch."""


@contextlib.asynccontextmanager
async def serving(folder: Path, *flags: str) -> AsyncIterator[APIServer]:
    """A server on the loopback with a store in memory."""
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
    usual = ["--etcd-servers=memory://", "--bind-address=127.0.0.1", "--secure-port=0", f"--cert-dir={folder}"]
    server = APIServer(parse([*usual, f"--token-auth-file={folder}/tokens.csv", *flags]))
    await server.start()
    running = asyncio.create_task(server.run())
    try:
        yield server
    finally:
        server.stop()
        await running


@contextlib.asynccontextmanager
async def _sent(port: int, method: str, path: str, body: Any, **headers: str) -> AsyncIterator[asyncio.StreamReader]:
    tls = ssl._create_unverified_context()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=1 << 24)
    data = json.dumps(body).encode() if body is not None else b""
    all_headers = {
        "Host": "x",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Content-Length": str(len(data)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
    writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
    try:
        yield reader
    finally:
        writer.close()


async def call(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    """The status and the body of an answer."""
    async with _sent(port, method, path, body, **headers) as reader, asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
        assert length, head
        return int(head.split(b" ", 2)[1]), await reader.readexactly(int(length[1]))


@contextlib.asynccontextmanager
async def watching(port: int, path: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """The events of a watch, as they come, one in a chunk or several."""
    async with _sent(port, "GET", path, None) as reader:

        async def events() -> AsyncIterator[dict[str, Any]]:
            while (line := await asyncio.wait_for(reader.readline(), PATIENCE)) not in (b"", b"0\r\n"):
                if line.startswith(b'{"type"'):
                    yield json.loads(line)

        yield events()
