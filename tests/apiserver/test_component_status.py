"""How the parts of the control plane are, as ComponentStatuses say it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pybernetes.api.errors import NotFound
from pybernetes.apiserver.component_status import component_statuses
from pybernetes.apiserver.selfsigned import self_signed


@contextlib.asynccontextmanager
async def component(folder: Path, answer: bytes) -> AsyncIterator[int]:
    """A component's health endpoint; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(folder, "127.0.0.1"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /healthz HTTP/1.1\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def registry(**ports: int) -> Any:
    async def check() -> None: ...

    health = {name.replace("_", "-"): port for name, port in ports.items()}
    return cast(
        Any, SimpleNamespace(cache=SimpleNamespace(store=SimpleNamespace(check=check)), component_health=health)
    )


async def test_scheduler_and_controller_manager_are_asked_for_their_health(tmp_path: Path) -> None:
    well = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    ill = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\nhelp!"
    async with component(tmp_path, well) as scheduler, component(tmp_path, ill) as manager:
        found = await component_statuses(registry(scheduler=scheduler, controller_manager=manager))
    shown = [
        (each.metadata.name, condition.status, condition.message, condition.error)
        for each in found
        for condition in each.conditions or ()
        if each.metadata
    ]
    assert shown == [
        ("scheduler", "True", "ok", None),
        ("controller-manager", "False", "help!", "unhealthy http status code: 500"),
        ("etcd-0", "True", "ok", None),
    ]


async def test_a_component_that_is_away_is_unhealthy_and_says_why() -> None:
    (found,) = await component_statuses(registry(scheduler=1), "scheduler")
    (condition,) = found.conditions or ()
    assert condition.status == "False"
    why = 'Get "https://127.0.0.1:1/healthz": dial tcp 127.0.0.1:1: connect: '
    assert (condition.message or "").startswith(why)


async def test_other_names_are_not_found() -> None:
    with pytest.raises(NotFound):
        await component_statuses(registry(), "kubelet")
