"""The DNS server over real sockets, with dnspython as the client."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import struct
import time
from collections.abc import AsyncIterator

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import pytest
from waiting import wait_for

from pybernetes.dns import corefile, pods
from pybernetes.dns import server as server_module
from pybernetes.dns.cache import Packets
from pybernetes.dns.forward import Forwarder
from pybernetes.dns.message import CNAME, PTR, A, address_record, name_record, srv_record
from pybernetes.dns.pods import PodNames
from pybernetes.dns.resolver import Chain, Resolver
from pybernetes.dns.server import DNSServer
from pybernetes.dns.zone import Zone

WEB = "web.shop.svc.cluster.local"
HOST = "127.0.0.1"


def zone() -> Zone:
    made = Zone("cluster.local", 30)
    made.replace("shop/web", [address_record(WEB, 30, "10.96.0.7"), srv_record(f"_http._tcp.{WEB}", 30, 80, WEB)])
    made.replace("shop/web-back", [name_record("7.0.96.10.in-addr.arpa", PTR, 30, WEB)])
    many = "many.shop.svc.cluster.local"
    made.replace("shop/many", [address_record(many, 30, f"10.1.0.{number}") for number in range(1, 101)])
    made.replace("shop/out", [name_record("out.shop.svc.cluster.local", CNAME, 30, "www.example.com")])
    made.replace("shop/alias", [name_record("alias.shop.svc.cluster.local", CNAME, 30, WEB)])
    return made


@contextlib.asynccontextmanager
async def serving(chain: Chain, pod_names: PodNames | None = None) -> AsyncIterator[tuple[DNSServer, int]]:
    server = DNSServer(Resolver({"": chain}, pod_names or PodNames()))
    port = await server.start(HOST, 0)
    try:
        yield server, port
    finally:
        await server.stop()


async def ask(port: int, name: str, kind: str = "A", *, tcp: bool = False, edns: int = -1) -> dns.message.Message:
    query = dns.message.make_query(name, kind, use_edns=edns)
    send = dns.query.tcp if tcp else dns.query.udp
    return await asyncio.to_thread(send, query, HOST, 10, port)


def shown(reply: dns.message.Message) -> list[str]:
    return sorted(" ".join(each.to_text().split()) for each in reply.answer)


async def test_services_have_addresses_ports_and_a_way_back() -> None:
    async with serving(Chain(zone())) as (_, port):
        reply = await ask(port, WEB)
        assert shown(reply) == [f"{WEB}. 30 IN A 10.96.0.7"]
        assert reply.flags & dns.flags.AA
        assert shown(await ask(port, WEB.upper())) == [f"{WEB.upper()}. 30 IN A 10.96.0.7"]
        assert shown(await ask(port, f"_http._tcp.{WEB}", "SRV")) == [f"_http._tcp.{WEB}. 30 IN SRV 0 100 80 {WEB}."]
        assert shown(await ask(port, "7.0.96.10.in-addr.arpa", "PTR")) == [f"7.0.96.10.in-addr.arpa. 30 IN PTR {WEB}."]
        assert shown(await ask(port, "dns-version.cluster.local", "TXT")) == [
            'dns-version.cluster.local. 30 IN TXT "1.1.0"'
        ]
        assert shown(await ask(port, "alias.shop.svc.cluster.local")) == [
            "alias.shop.svc.cluster.local. 30 IN CNAME web.shop.svc.cluster.local.",
            f"{WEB}. 30 IN A 10.96.0.7",
        ]


@pytest.mark.parametrize(
    ("name", "kind", "rcode"),
    [
        (WEB, "AAAA", "NOERROR"),
        ("shop.svc.cluster.local", "A", "NOERROR"),
        ("svc.cluster.local", "A", "NOERROR"),
        ("cluster.local", "A", "NOERROR"),
        ("shop.pod.cluster.local", "A", "NOERROR"),
        ("no.shop.svc.cluster.local", "A", "NXDOMAIN"),
        ("web.none.svc.cluster.local", "A", "NXDOMAIN"),
        ("none.svc.cluster.local", "A", "NXDOMAIN"),
        ("nonsense.cluster.local", "A", "NXDOMAIN"),
    ],
)
async def test_what_is_not_there_is_denied_with_the_soa(name: str, kind: str, rcode: str) -> None:
    async with serving(Chain(zone())) as (_, port):
        reply = await ask(port, name, kind)
    assert dns.rcode.to_text(reply.rcode()) == rcode
    assert reply.answer == []
    (soa,) = reply.authority
    assert soa.rdtype == dns.rdatatype.SOA
    assert soa.name.to_text() == "cluster.local."


async def test_a_change_is_seen_by_the_next_query() -> None:
    names = zone()
    async with serving(Chain(names)) as (_, port):
        assert shown(await ask(port, WEB)) == [f"{WEB}. 30 IN A 10.96.0.7"]
        names.replace("shop/web", [address_record(WEB, 30, "10.96.0.8")])
        assert shown(await ask(port, WEB)) == [f"{WEB}. 30 IN A 10.96.0.8"]
        names.replace("shop/web", [])
        assert (await ask(port, WEB)).rcode() == dns.rcode.NXDOMAIN


async def test_an_external_name_that_becomes_another_service_is_seen_by_the_next_query() -> None:
    names, out = zone(), "out.shop.svc.cluster.local"
    async with upstream() as (_, other_port), serving(Chain(names, forwarder=Forwarder([(HOST, other_port)]))) as found:
        server, port = found
        assert len(shown(await ask(port, out))) == 2
        names.replace("shop/out", [name_record(out, CNAME, 30, "no.example.com")])
        assert (await ask(port, out)).rcode() == dns.rcode.NXDOMAIN
        names.replace("shop/out", [address_record(out, 30, "10.96.0.8")])
        assert shown(await ask(port, out)) == [f"{out}. 30 IN A 10.96.0.8"]
        names.replace("shop/out", [name_record(out, CNAME, 30, out)])
        assert shown(await ask(port, out)) == [f"{out}. 30 IN CNAME {out}."], "an alias of itself is given once"
        assert len(server.cache) == 1


async def test_large_answers_are_truncated_over_udp_and_whole_over_tcp() -> None:
    async with serving(Chain(zone())) as (_, port):
        reply = await ask(port, "many.shop.svc.cluster.local")
        assert reply.flags & dns.flags.TC
        assert reply.answer == []
        reply = await ask(port, "many.shop.svc.cluster.local", tcp=True)
        assert not reply.flags & dns.flags.TC
        assert len(reply.answer[0]) == 100


async def test_the_addresses_of_srv_targets_come_along_as_far_as_there_is_room() -> None:
    made, headless = zone(), "db.shop.svc.cluster.local"
    targets = [(f"db-{number}.{headless}", f"10.1.0.{number}") for number in range(1, 9)]
    service = f"_sql._tcp.{headless}"
    records = [
        address_record(*each) for name, address in targets for each in ((name, 30, address), (name, 30, "fd00::1"))
    ]
    made.replace("shop/db", [*records, *(srv_record(service, 30, 5432, name) for name, _ in targets)])
    async with serving(Chain(made)) as (_, port):
        (additional,) = (await ask(port, f"_http._tcp.{WEB}", "SRV")).additional
        assert additional.to_text() == f"{WEB}. 30 IN A 10.96.0.7"
        whole = await ask(port, service, "SRV", tcp=True)
        assert len(whole.answer[0]) == 8
        assert len(whole.additional) == 16
        short = await ask(port, service, "SRV", edns=0)
        assert not short.flags & dns.flags.TC
        assert len(short.answer[0]) == 8
        assert short.additional == []


async def test_of_several_addresses_another_comes_first_each_time() -> None:
    async with serving(Chain(zone())) as (_, port):
        replies = [await ask(port, "many.shop.svc.cluster.local", tcp=True) for _ in range(8)]
        first = {next(iter(reply.answer[0])).to_text() for reply in replies}
    # dnspython keeps records in the order of the message.
    assert len(first) == 8


async def test_edns_is_answered_with_edns_and_a_later_version_is_refused() -> None:
    async with serving(Chain(zone())) as (_, port):
        assert (await ask(port, WEB, edns=0)).edns == 0
        assert (await ask(port, WEB)).edns == -1
        assert (await ask(port, WEB, edns=1)).rcode() == dns.rcode.BADVERS


async def test_pods_have_names_by_their_address() -> None:
    known = PodNames()
    known.set("shop/a", "shop", ("10.1.0.5",))
    async with serving(Chain(zone(), pods.INSECURE), known) as (_, port):
        name = "10-1-0-9.shop.pod.cluster.local"
        assert shown(await ask(port, name)) == [f"{name}. 30 IN A 10.1.0.9"]
        assert (await ask(port, name, "AAAA")).rcode() == dns.rcode.NOERROR
        assert shown(await ask(port, "fd00--1.shop.pod.cluster.local", "AAAA")) == [
            "fd00--1.shop.pod.cluster.local. 30 IN AAAA fd00::1"
        ]
    async with serving(Chain(zone(), pods.VERIFIED), known) as (_, port):
        assert shown(await ask(port, "10-1-0-5.shop.pod.cluster.local")) != []
        assert (await ask(port, "10-1-0-9.shop.pod.cluster.local")).rcode() == dns.rcode.NXDOMAIN
        assert (await ask(port, "10-1-0-5.other.pod.cluster.local")).rcode() == dns.rcode.NXDOMAIN
    async with serving(Chain(zone(), pods.DISABLED), known) as (_, port):
        assert (await ask(port, "10-1-0-5.shop.pod.cluster.local")).rcode() == dns.rcode.NXDOMAIN


@contextlib.asynccontextmanager
async def upstream() -> AsyncIterator[tuple[DNSServer, int]]:
    """Another DNS server, for the zone example.com."""
    other = Zone("example.com", 600)
    other.replace("www", [address_record("www.example.com", 600, "192.0.2.1")])
    large = [address_record("large.example.com", 600, f"192.0.2.{number}") for number in range(200)]
    other.replace("large", large)
    async with serving(Chain(other, pods.DISABLED)) as started:
        yield started


async def test_other_names_are_forwarded_and_kept_for_their_ttl() -> None:
    async with (
        upstream() as (other, other_port),
        serving(Chain(zone(), forwarder=Forwarder([(HOST, other_port)]))) as (
            server,
            port,
        ),
    ):
        for _ in range(3):
            (answer,) = (await ask(port, "www.example.com")).answer
            assert answer.to_text().endswith("IN A 192.0.2.1")
            assert 590 < answer.ttl <= 600
        assert other.requests["udp"] == 1
        assert (await ask(port, "no.example.com")).rcode() == dns.rcode.NXDOMAIN
        assert shown(await ask(port, "out.shop.svc.cluster.local")) == [
            "out.shop.svc.cluster.local. 30 IN CNAME www.example.com.",
            "www.example.com. 600 IN A 192.0.2.1",
        ]
        reply = await ask(port, "large.example.com", tcp=True)
        assert len(reply.answer[0]) == 200
        assert other.requests["tcp"] == 1
        assert server.cache.hits == 2


async def test_answers_of_others_are_kept_no_longer_than_the_configuration_says() -> None:
    async with upstream() as (_, other_port):
        chain = Chain(zone(), forwarder=Forwarder([(HOST, other_port)]), longest_ttl=30, denial_ttl=5)
        resolver = Resolver({"": chain}, PodNames())
        for name, seconds in (("www.example.com", 30), ("no.example.com", 5)):
            answer = await resolver.later(name, A)
            assert answer.until - answer.since == pytest.approx(seconds)


async def test_upstream_servers_that_do_not_answer_are_passed_over_and_none_is_servfail() -> None:
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind((HOST, 0))
    dead = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    dead.bind((HOST, 0))
    dead_port = dead.getsockname()[1]
    dead.close()
    async with upstream() as (_, other_port):
        forwarder = Forwarder([(HOST, dead_port), (HOST, other_port)])
        async with serving(Chain(zone(), forwarder=forwarder)) as (_, port):
            assert shown(await ask(port, "www.example.com")) == ["www.example.com. 600 IN A 192.0.2.1"]
        async with serving(Chain(zone(), forwarder=Forwarder([(HOST, dead_port)]))) as (_, port):
            assert (await ask(port, "www.example.com")).rcode() == dns.rcode.SERVFAIL
            assert shown(await ask(port, WEB)) == [f"{WEB}. 30 IN A 10.96.0.7"]
    silent.close()


async def test_a_loop_of_servers_is_found_and_names_of_the_cluster_still_resolve() -> None:
    async with serving(Chain(zone())) as (server, port):
        forwarder = Forwarder([(HOST, port)])
        server.resolver = Resolver({"": Chain(zone(), forwarder=forwarder)}, PodNames())
        await forwarder.detect_loop()
        assert forwarder.looping
        assert (await ask(port, "www.example.com")).rcode() == dns.rcode.SERVFAIL
        assert shown(await ask(port, WEB)) == [f"{WEB}. 30 IN A 10.96.0.7"]


async def test_autopath_finds_a_name_along_the_search_path_in_one_query() -> None:
    known = PodNames()
    known.set("shop/a", "shop", (HOST,))
    async with upstream() as (other, other_port):
        chain = Chain(zone(), forwarder=Forwarder([(HOST, other_port)]), autopath=True, search=["corp.example.com"])
        async with serving(chain, known) as (_, port):
            asked = "www.example.com.shop.svc.cluster.local"
            for _ in range(2):
                assert shown(await ask(port, asked)) == [
                    "www.example.com. 600 IN A 192.0.2.1",
                    f"{asked}. 600 IN CNAME www.example.com.",
                ]
            before = other.requests["udp"]
            assert shown(await ask(port, "web.shop.shop.svc.cluster.local")) == [
                f"web.shop.shop.svc.cluster.local. 30 IN CNAME {WEB}.",
                f"{WEB}. 30 IN A 10.96.0.7",
            ]
            assert other.requests["udp"] == before
            # From another namespace than the pod's the name is what it is.
            assert (await ask(port, "www.example.com.other.svc.cluster.local")).rcode() == dns.rcode.NXDOMAIN
            # Nothing along the path exists: the first denial is the answer.
            assert (await ask(port, "none.shop.svc.cluster.local")).rcode() == dns.rcode.NXDOMAIN


async def test_garbage_and_floods_do_not_stop_the_server() -> None:
    async with serving(Chain(zone(), forwarder=Forwarder([]))) as (server, port):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect((HOST, port))
            base = dns.message.make_query(WEB, "A").to_wire()
            garbage = [
                b"",
                b"\0" * 11,
                base[:13],
                base[:-3],
                b"\xff" * 512,
                base[:12] + b"\xc0\x0c" + base[-4:],
                base[:12] + b"\xc0\xff" + base[-4:],
                base[:12] + b"\x3f" * 300,
                base[:2] + b"\x80" + base[3:],
                base[:4] + struct.pack("!H", 65535) + base[6:],
                base[:10] + struct.pack("!H", 65535) + base[12:],
                *(base[:place] + b"\xff" + base[place + 1 :] for place in range(len(base))),
            ]
            for data in garbage:
                with contextlib.suppress(OSError):
                    sock.send(data)
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(struct.pack("!H", 5) + b"hello")
        assert await reader.read() == b""
        writer.close()
        await wait_for(lambda: server.requests["udp"] >= len(garbage) - 1, "the garbage is read")
        assert shown(await ask(port, WEB)) == [f"{WEB}. 30 IN A 10.96.0.7"]


async def test_a_client_that_asks_without_end_takes_no_answers_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CLIENT_PENDING", 3)
    monkeypatch.setattr(server_module, "CLIENT_CONNECTIONS", 2)
    async with upstream() as (_, other_port):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind((HOST, 0))
            chains = {
                "silent": Chain(forwarder=Forwarder([silent.getsockname()])),
                "": Chain(zone(), forwarder=Forwarder([(HOST, other_port)])),
            }
            server = DNSServer(Resolver(chains, PodNames()))
            port = await server.start(HOST, 0)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
                flood.bind(("127.0.0.9", 0))
                flood.setblocking(False)
                flood.connect((HOST, port))
                for number in range(4):
                    flood.send(dns.message.make_query(f"{number}.silent", "A").to_wire())
                await wait_for(lambda: server.responses[dns.rcode.SERVFAIL] == 1, "the fourth is refused")
                assert shown(await ask(port, "www.example.com")) == ["www.example.com. 600 IN A 192.0.2.1"]
            held = [await asyncio.open_connection(HOST, port, local_addr=("127.0.0.9", 0)) for _ in range(3)]
            assert await held[2][0].read() == b"", "a third connection is closed"
            assert shown(await ask(port, WEB, tcp=True)) == [f"{WEB}. 30 IN A 10.96.0.7"]
            for _, writer in held:
                writer.close()
            await server.stop()
            await wait_for(lambda: not server._pending_of and not server._connections, "nothing is counted any more")


async def test_the_cache_is_bounded() -> None:
    async with serving(Chain(zone())) as (server, _):
        for _ in range(12_000):
            server._at_once(parse_query(f"{secrets.token_hex(4)}.cluster.local"), HOST, 512)
        assert len(server.cache) == 10_000


def parse_query(name: str):  # type: ignore[no-untyped-def]
    from pybernetes.dns.message import parse

    return parse(dns.message.make_query(name, "A").to_wire())


async def test_a_stub_domain_has_servers_of_its_own() -> None:
    async with upstream() as (_, other_port):
        text = f"example.com {{\n forward . {HOST}:{other_port}\n}}\n. {{\n kubernetes cluster.local\n}}"
        stub, rest = corefile.parse(text)
        chains = {"example.com": Chain(forwarder=Forwarder(stub.forward)), rest.zones[0]: Chain(zone())}
        server = DNSServer(Resolver(chains, PodNames()))
        port = await server.start(HOST, 0)
        assert shown(await ask(port, "www.example.com")) == ["www.example.com. 600 IN A 192.0.2.1"]
        assert (await ask(port, "www.example.org")).rcode() == dns.rcode.REFUSED
        assert shown(await ask(port, WEB)) == [f"{WEB}. 30 IN A 10.96.0.7"]
        await server.stop()


async def test_an_answer_that_is_asked_for_often_is_fetched_anew_once_before_it_ends() -> None:
    async with (
        upstream() as (other, other_port),
        serving(Chain(zone(), forwarder=Forwarder([(HOST, other_port)]))) as (server, port),
    ):

        async def asked(*, left: float) -> int:
            """The TTL that is shown when so many seconds are left."""
            (kept,) = server.cache._foreign.values()
            kept.since -= kept.until - left - time.monotonic()
            kept.until = time.monotonic() + left
            server._packets = Packets()
            return (await ask(port, "www.example.com")).answer[0].ttl

        await ask(port, "www.example.com")
        for _ in range(3):
            assert await asked(left=300) <= 301
        assert other.requests["udp"] == 1
        assert await asked(left=50) <= 51
        await wait_for(lambda: other.requests["udp"] == 2, "it is fetched anew")
        await wait_for(lambda: next(iter(server.cache._foreign.values())).until > time.monotonic() + 590, "it is new")
        # The upstream server is gone: the answer is given until it ends, and asked for once.
        failures = server.resolver.chains[""].forwarder
        assert failures is not None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
            dead.bind((HOST, 0))
            failures.servers = (dead.getsockname(),)
        for _ in range(3):
            await asked(left=300)
        for _ in range(3):
            assert await asked(left=50) <= 51
        await wait_for(lambda: failures.failures > 0, "it is tried")
        assert await asked(left=49) <= 50
        assert failures.requests == 3
