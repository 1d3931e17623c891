"""What is made by netlink, as Debian's `nft` lists it."""

from __future__ import annotations

import errno
import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from network.namespace import NetworkNamespace, network_namespace

from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.datatypes import IPV4, IPV6, MARK, PORT, PROTOCOL, VERDICT, concat, port, protocol
from pybernetes.network.nftables.errors import GenerationChanged, NftablesError
from pybernetes.network.nftables.objects import Chain, Hook, Set, Table, element

TABLE = Table("ip", "t")
R = e.REGISTER


@pytest.fixture(scope="module")
def machine() -> Iterator[NetworkNamespace]:
    with network_namespace("nft") as made:
        yield made


@pytest.fixture
def nft(machine: NetworkNamespace) -> Iterator[Nftables]:
    machine.output("nft", "flush", "ruleset")
    with machine.run(Nftables) as made:
        yield made


def begun(table: Table = TABLE) -> Batch:
    batch = Batch()
    batch.replace_table(table)
    return batch


def listed(machine: NetworkNamespace, table: Table = TABLE) -> str:
    """The table as nft prints it, a line for each thing."""
    lines = machine.output("nft", "list", "table", table.family, table.name).splitlines()
    return "\n".join(line.strip() for line in lines)


def ipv4(text: str) -> bytes:
    return socket.inet_aton(text)


def test_base_chains_with_hooks_are_listed_as_made(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_chain(TABLE, Chain("nat", Hook("nat", objects.PREROUTING, objects.DSTNAT_PRIORITY)))
    batch.add_chain(TABLE, Chain("closed", Hook("filter", objects.FORWARD, -110, e.DROP)))
    batch.add_chain(TABLE, Chain("plain"))
    nft.commit(batch)
    shown = listed(machine)
    assert "type nat hook prerouting priority dstnat; policy accept;" in shown
    assert "type filter hook forward priority -110; policy drop;" in shown
    assert {chain.name: chain.hook for chain in nft.chains(TABLE)} == {
        "nat": Hook("nat", 0, -100),
        "closed": Hook("filter", 2, -110, e.DROP),
        "plain": None,
    }


RULES: list[tuple[list[bytes], str]] = [
    (
        [e.destination_address(e.IPV4, R), e.compare(R, ipv4("10.0.0.1")), e.verdict(e.ACCEPT)],
        "ip daddr 10.0.0.1 accept",
    ),
    (
        [
            e.source_address(e.IPV4, R),
            e.bitwise(R, ipv4("255.255.0.0")),
            e.compare(R, ipv4("10.1.0.0"), e.NOT_EQUAL),
            e.verdict(e.DROP),
        ],
        "ip saddr != 10.1.0.0/16 drop",
    ),
    (
        [
            e.meta(e.L4PROTO, R),
            e.compare(R, b"\x06"),
            e.destination_port(R),
            e.compare(R, b"\0P"),
            e.counter(),
            e.jump("other"),
        ],
        "tcp dport 80 counter packets 0 bytes 0 jump other",
    ),
    (
        [
            e.meta(e.MARK, R),
            e.bitwise(R, struct.pack("=I", 0xFFFFBFFF), struct.pack("=I", 0x4000)),
            e.set_meta(e.MARK, R),
        ],
        "meta mark set meta mark | 0x00004000",
    ),
    (
        [e.address_type(R), e.compare(R, struct.pack("=I", e.LOCAL_TYPE)), e.goto("other")],
        "fib daddr type local goto other",
    ),
    (
        [e.ct_state(R), e.bitwise(R, struct.pack("=I", e.NEW)), e.compare(R, bytes(4), e.NOT_EQUAL), e.reject(e.IPV4)],
        "ct state new reject",
    ),
    (
        [e.meta(e.OIFNAME, R), e.compare(R, b"pyb0".ljust(16, b"\0"), e.NOT_EQUAL), e.verdict(e.RETURN)],
        'oifname != "pyb0" return',
    ),
    ([e.meta(e.L4PROTO, R), e.compare(R, b"\x06"), e.reset()], "reject with tcp reset"),
]


@pytest.mark.parametrize(("rule", "text"), RULES, ids=[text for _, text in RULES])
def test_a_rule_is_listed_as_nft_writes_it(
    machine: NetworkNamespace, nft: Nftables, rule: list[bytes], text: str
) -> None:
    batch = begun()
    batch.add_chain(TABLE, Chain("other"))
    batch.add_chain(TABLE, Chain("c", Hook("filter", objects.FORWARD, 0)))
    batch.add_rule(TABLE, "c", rule, comment="why not")
    nft.commit(batch)
    assert f'{text} comment "why not"' in listed(machine).splitlines()


def test_addresses_and_ports_are_translated(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_chain(TABLE, Chain("pre", Hook("nat", objects.PREROUTING, -100)))
    batch.add_chain(TABLE, Chain("post", Hook("nat", objects.POSTROUTING, 100)))
    target = [e.immediate(R, ipv4("10.0.0.2")), e.immediate(R + 1, port(8080)[:2])]
    batch.add_rule(TABLE, "pre", [e.meta(e.L4PROTO, R), e.compare(R, b"\x06"), *target, e.dnat(e.IPV4, R, R + 1)])
    batch.add_rule(TABLE, "post", [e.masquerade(fully_random=True)])
    batch.add_rule(TABLE, "post", [e.immediate(R, ipv4("10.0.0.9")), e.snat(e.IPV4, R)])
    nft.commit(batch)
    shown = listed(machine)
    assert "meta l4proto tcp dnat to 10.0.0.2:8080" in shown
    assert "masquerade fully-random" in shown
    assert "snat to 10.0.0.9" in shown


def test_a_verdict_map_with_a_concatenated_key(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("services", concat(IPV4, PROTOCOL, PORT), VERDICT))
    batch.add_chain(TABLE, Chain("web"))
    batch.add_chain(TABLE, Chain("pre", Hook("nat", objects.PREROUTING, -100)))
    key = ipv4("10.96.0.1") + protocol(6) + port(443)
    batch.add_elements(TABLE, "services", [element(key, e.verdict_value(e.GOTO, "web"))])
    load = [e.destination_address(e.IPV4, R), e.meta(e.L4PROTO, R + 1), e.destination_port(R + 2)]
    batch.add_rule(TABLE, "pre", [*load, e.lookup("services", R, e.VERDICT_REGISTER)])
    nft.commit(batch)
    shown = listed(machine)
    assert "type ipv4_addr . inet_proto . inet_service : verdict" in shown
    assert "elements = { 10.96.0.1 . tcp . 443 : goto web }" in shown
    assert "ip daddr . meta l4proto . th dport vmap @services" in shown
    assert nft.elements(TABLE, "services") == [objects.Element(key, verdict=e.GOTO, chain="web")]


def test_a_random_index_leads_to_an_address_and_port(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("endpoints", concat(IPV4, PORT, MARK), concat(IPV4, PORT)))
    batch.add_chain(TABLE, Chain("pre", Hook("nat", objects.PREROUTING, -100)))
    key = ipv4("10.96.0.1") + port(443) + struct.pack("=I", 1)
    batch.add_elements(TABLE, "endpoints", [element(key, e.value(ipv4("10.0.0.7") + port(8443)))])
    load = [e.destination_address(e.IPV4, R), e.destination_port(R + 1), e.random(2, R + 2)]
    batch.add_rule(
        TABLE,
        "pre",
        [e.meta(e.L4PROTO, R), e.compare(R, b"\x06"), *load, e.lookup("endpoints", R, R), e.dnat(e.IPV4, R, R + 1)],
    )
    nft.commit(batch)
    shown = listed(machine)
    assert "elements = { 10.96.0.1 . 443 . 0x00000001 : 10.0.0.7 . 8443 }" in shown
    assert "dnat ip to ip daddr . tcp dport . numgen random mod 2 map @endpoints" in shown
    assert nft.elements(TABLE, "endpoints")[0].data == ipv4("10.0.0.7") + port(8443)


def test_a_dynamic_map_is_filled_by_packets_and_forgets(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("seen", concat(IPV4, PORT), IPV4, dynamic=True, expires=True))
    batch.add_chain(TABLE, Chain("out", Hook("filter", objects.OUTPUT, 0)))
    load = [
        e.destination_address(e.IPV4, R),
        e.destination_port(R + 1),
        e.source_address(e.IPV4, R + 2),
        e.update_set("seen", R, R + 2, timeout_ms=3_600_000),
    ]
    batch.add_rule(TABLE, "out", [e.meta(e.L4PROTO, R), e.compare(R, b"\x11"), *load])
    nft.commit(batch)
    assert "update @seen { ip daddr . udp dport timeout 1h : ip saddr }" in listed(machine)

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.sendto(b"x", ("127.0.0.3", 9))

    machine.run(send)
    (found,) = nft.elements(TABLE, "seen")
    assert (found.key, found.data) == (ipv4("127.0.0.3") + port(9), ipv4("127.0.0.1"))
    assert found.timeout_ms == 3_600_000
    assert 0 < found.expires_ms <= 3_600_000


def test_elements_keep_what_is_left_of_their_time_in_a_new_table(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("seen", IPV4, dynamic=True, expires=True))
    batch.add_elements(TABLE, "seen", [element(ipv4("10.0.0.1"), timeout_ms=3_600_000, expires_ms=60_000)])
    nft.commit(batch)
    (found,) = nft.elements(TABLE, "seen")
    assert found.timeout_ms == 3_600_000
    assert found.expires_ms <= 60_000


def test_intervals_of_a_concatenation(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("allowed", concat(IPV4, PROTOCOL, PORT), interval=True))
    low, high = (ipv4(each) + protocol(6) + port(80) for each in ("10.0.0.0", "10.0.0.255"))
    batch.add_elements(TABLE, "allowed", [element(low, key_end=high)])
    nft.commit(batch)
    assert "elements = { 10.0.0.0/24 . tcp . 80 }" in listed(machine)
    assert nft.sets(TABLE)[0].key.fields == (4, 1, 2)
    assert nft.elements(TABLE, "allowed") == [objects.Element(low, key_end=high)]


def test_addresses_of_ipv6(machine: NetworkNamespace, nft: Nftables) -> None:
    table = Table("ip6", "t")
    batch = begun(table)
    batch.add_set(table, Set("m", concat(IPV6, PROTOCOL, PORT, MARK), concat(IPV6, PORT)))
    key = socket.inet_pton(socket.AF_INET6, "fd00::1") + protocol(17) + port(53) + struct.pack("=I", 0)
    data = socket.inet_pton(socket.AF_INET6, "fd01::2") + port(5353)
    batch.add_elements(table, "m", [element(key, e.value(data))])
    nft.commit(batch)
    assert "fd00::1 . udp . 53 . 0x00000000 : fd01::2 . 5353" in listed(machine, table)


def test_ten_thousand_elements_go_in_one_batch_and_come_back(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("many", concat(IPV4, PORT), IPV4))
    keys = [struct.pack(">I", 0x0A000000 + n) + port(80) for n in range(10_000)]
    batch.add_elements(TABLE, "many", [element(key, e.value(key[:4])) for key in keys])
    nft.commit(batch)
    assert sorted(each.key for each in nft.elements(TABLE, "many")) == keys


def test_a_refused_batch_changes_nothing_and_names_the_object(machine: NetworkNamespace, nft: Nftables) -> None:
    nft.commit(begun())
    batch = Batch()
    batch.add_chain(TABLE, Chain("good"))
    batch.add_rule(TABLE, "missing", [e.counter()], comment="lost")
    with pytest.raises(NftablesError) as refused:
        nft.commit(batch)
    assert refused.value.subject == "add rule ip t missing (lost)"
    assert refused.value.errno == errno.ENOENT
    assert str(refused.value) == "nftables: add rule ip t missing (lost): No such file or directory"
    assert nft.chains(TABLE) == []


def test_a_refused_element_is_named_by_its_key(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("s", IPV4))
    elements = [element(struct.pack(">I", n)) for n in range(5000)]
    batch.add_elements(TABLE, "s", elements)
    nft.commit(batch)
    again = Batch()
    again.delete_elements(TABLE, "s", [*elements[:3000], element(b"\x0a\x09\x08\x07"), *elements[3000:]])
    with pytest.raises(NftablesError) as refused:
        nft.commit(again)
    assert refused.value.subject == "delete elements ip t s key 0a090807"
    assert len(nft.elements(TABLE, "s")) == 5000


def test_several_refusals_are_counted(machine: NetworkNamespace, nft: Nftables) -> None:
    nft.commit(begun())
    batch = Batch()
    for name in ("a", "b", "c"):
        batch.delete_chain(TABLE, name)
    with pytest.raises(NftablesError, match=r"delete chain ip t a: .*2 more: delete chain ip t b, delete chain ip t c"):
        nft.commit(batch)


def test_a_value_is_replaced_in_one_batch(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("m", IPV4, IPV4))
    key = ipv4("10.0.0.1")
    batch.add_elements(TABLE, "m", [element(key, e.value(ipv4("10.0.0.2")))])
    nft.commit(batch)
    batch = Batch()
    batch.delete_elements(TABLE, "m", [element(key)])
    batch.add_elements(TABLE, "m", [element(key, e.value(ipv4("10.0.0.3")))])
    nft.commit(batch)
    assert [each.data for each in nft.elements(TABLE, "m")] == [ipv4("10.0.0.3")]


def test_a_batch_for_an_older_generation_is_refused(machine: NetworkNamespace, nft: Nftables) -> None:
    nft.commit(begun())
    generation = nft.generation()
    batch = Batch()
    batch.add_chain(TABLE, Chain("one"))
    nft.commit(batch, generation)
    other = Batch()
    other.add_chain(TABLE, Chain("two"))
    with pytest.raises(GenerationChanged):
        nft.commit(other, generation)
    assert [chain.name for chain in nft.chains(TABLE)] == ["one"]


def test_only_changes_by_others_are_reported(machine: NetworkNamespace, nft: Nftables) -> None:
    nft.watch()
    batch = begun()
    batch.add_chain(TABLE, Chain("c"))
    batch.add_set(TABLE, Set("many", IPV4))
    batch.add_elements(TABLE, "many", [element(struct.pack(">I", n)) for n in range(50_000)])
    nft.commit(batch)
    assert nft.changes() == set()
    refused = Batch()
    refused.delete_chain(TABLE, "none")
    with pytest.raises(NftablesError):
        nft.commit(refused)
    assert nft.changes() == set()
    machine.output("nft", "add", "rule", "ip", "t", "c", "accept")
    assert nft.changes() == {TABLE}
    machine.output("nft", "add", "table", "ip6", "other")
    machine.output("nft", "delete", "table", "ip", "t")
    assert nft.changes() == {TABLE, Table("ip6", "other")}
    assert nft.changes() == set()


def test_a_flood_of_changes_by_others_is_reported_as_unknown(machine: NetworkNamespace, nft: Nftables) -> None:
    nft.watch()
    batch = begun()
    batch.add_set(TABLE, Set("many", IPV4))
    batch.add_elements(TABLE, "many", [element(struct.pack(">I", n)) for n in range(100_000)])
    with machine.run(Nftables) as somebody:
        somebody.commit(batch)
    assert nft.changes() is None
    assert nft.changes() == set()


def test_rules_are_listed_with_handles_and_deleted_by_them(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_chain(TABLE, Chain("c"))
    batch.add_rule(TABLE, "c", [e.counter()], comment="first")
    batch.add_rule(TABLE, "c", [e.verdict(e.ACCEPT)])
    batch.insert_rule(TABLE, "c", [e.verdict(e.DROP)], comment="before")
    nft.commit(batch)
    found = nft.rules(TABLE, "c")
    assert [(rule.comment, [name for name, _ in rule.expressions]) for rule in found] == [
        ("before", ["immediate"]),
        ("first", ["counter"]),
        ("", ["immediate"]),
    ]
    batch = Batch()
    batch.delete_rule(TABLE, "c", found[1].handle)
    nft.commit(batch)
    assert [rule.handle for rule in nft.rules(TABLE, "c")] == [found[0].handle, found[2].handle]


def test_tables_are_listed_and_lists_of_what_is_not_there_are_empty_or_refused(
    machine: NetworkNamespace, nft: Nftables
) -> None:
    assert nft.tables() == []
    assert nft.chains(TABLE) == []
    with pytest.raises(NftablesError, match="list elements ip t s"):
        nft.elements(TABLE, "s")
    nft.commit(begun())
    assert nft.tables() == [TABLE]
    parsed: list[dict[str, Any]] = json.loads(machine.output("nft", "-j", "list", "tables"))["nftables"]
    assert [each["table"]["name"] for each in parsed if "table" in each] == ["t"]


def test_a_batch_that_the_socket_has_no_room_for_is_made_in_parts(
    machine: NetworkNamespace, nft: Nftables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Nftables, "_buffer", lambda *_: 100_000)  # it stays as it was made
    batch = begun()
    batch.add_set(TABLE, Set("many", IPV4))
    batch.add_elements(TABLE, "many", [element(struct.pack(">I", n)) for n in range(50_000)])
    with pytest.raises(OSError, match="Message too long"):
        nft.commit(batch)
    nft.commit_in_parts(batch)
    assert len(nft.elements(TABLE, "many")) == 50_000
    batch.delete_chain(TABLE, "none")
    with pytest.raises(NftablesError, match="delete chain ip t none"):
        nft.commit_in_parts(batch)


def test_elements_have_comments(machine: NetworkNamespace, nft: Nftables) -> None:
    batch = begun()
    batch.add_set(TABLE, Set("s", IPV4))
    batch.add_elements(TABLE, "s", [element(ipv4("10.0.0.1"), comment="whose it is")])
    nft.commit(batch)
    assert 'elements = { 10.0.0.1 comment "whose it is" }' in listed(machine)
    assert nft.elements(TABLE, "s") == [objects.Element(ipv4("10.0.0.1"), comment="whose it is")]
