"""Rules and addresses of a node that are restored after another program removed them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest
from network.namespace import network_namespace

import tools
from pybernetes.network import keeping, loopback, node_dns
from pybernetes.network.nftables.client import Nftables

DNS = "10.96.0.10"


async def keep_dns() -> None:
    await node_dns.keep(DNS)


def dns_held(nftables: Nftables) -> bool:
    return node_dns.held(nftables, DNS)


@pytest.mark.parametrize(
    ("keep", "held", "removed"),
    [
        (keep_dns, dns_held, ["nft", "delete", "table", "ip", "node-dns"]),
        (keep_dns, dns_held, ["nft", "flush", "chain", "ip", "node-dns", "output"]),
        (keep_dns, dns_held, ["ip", "address", "delete", f"{DNS}/32", "dev", "lo"]),
        (loopback.keep, loopback.held, ["nft", "flush", "ruleset"]),
        (loopback.keep, loopback.held, ["nft", "flush", "table", "ip", "pybernetes-loopback"]),
    ],
)
async def test_what_others_take_away_is_put_back(
    keep: Callable[[], Awaitable[None]],
    held: Callable[[Nftables], bool],
    removed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeping, "REPAIR_INTERVAL", 0.01)
    with network_namespace("nft") as node:

        def kept() -> None:
            asyncio.run(until_done())

        async def until_done() -> None:
            task = asyncio.ensure_future(keep())
            await asyncio.to_thread(done.wait)
            task.cancel()
            await asyncio.wait([task])

        def whole() -> bool:
            with Nftables() as nftables:
                return held(nftables)

        done = threading.Event()
        thread = threading.Thread(target=node.run, args=(kept,))
        thread.start()
        try:
            for _ in range(2):
                await asyncio.to_thread(tools.wait_until, lambda: node.run(whole), "it is held")
                node.output(*removed)
        finally:
            done.set()
            thread.join(10)
