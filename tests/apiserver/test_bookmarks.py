"""Whoever wants bookmarks gets one every minute, here every few milliseconds, until the time of the watch is up."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from pybernetes.apiserver.options import parse
from pybernetes.apiserver.server import APIServer
from pybernetes.apiserver.verbs import watch

TOKEN = "of-an-administrator"
PATH = "/api/v1/namespaces/default/configmaps"


async def test_bookmarks_come_again_and_again_also_between_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_EVERY", 0.0104)  # no whole number of milliseconds, which loops round to
    (tmp_path / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
    flags = ["--etcd-servers=memory://", "--bind-address=127.0.0.1", "--secure-port=0", f"--cert-dir={tmp_path}"]
    server = APIServer(parse([*flags, f"--token-auth-file={tmp_path}/tokens.csv"]))
    await server.start()
    running = asyncio.create_task(server.run())
    try:
        following = asyncio.create_task(
            call(server.port, "GET", f"{PATH}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1")
        )
        for number in range(40):
            await call(server.port, "POST", PATH, {"metadata": {"name": f"m{number}"}})
        events = [json.loads(line) for line in await following if line.startswith(b'{"type"')]
    finally:
        server.stop()
        await running
    kinds = [event["type"] for event in events]
    assert kinds.count("ADDED") == 40
    assert kinds.count("BOOKMARK") > 30
    assert "ADDED" in kinds[kinds.index("BOOKMARK") :], "in between"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    for event in events:
        if event["type"] == "BOOKMARK":
            assert set(event["object"]) == {"kind", "apiVersion", "metadata"}


async def call(port: int, method: str, path: str, body: Any = None) -> list[bytes]:
    """The lines of an answer."""
    tls = ssl._create_unverified_context()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    data = json.dumps(body).encode() if body is not None else b""
    writer.write(
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        + data
    )
    try:
        return (await asyncio.wait_for(reader.read(), 60)).split(b"\n")
    finally:
        writer.close()
