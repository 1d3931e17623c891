"""Two API servers on one etcd are one cluster: what one acknowledges, the other shows."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from robustness.harness import CONFIGMAPS, Answer, Server, running
from store.tools import Etcd

from pybernetes.store import open_store
from tools import wait_until

SERVICES = "/api/v1/namespaces/default/services"
Pair = tuple[Server, Server]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, pki: Path) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    etcd = Etcd(folder)
    etcd.start()
    etcd.wait()
    first = Server(folder / "a", pki, etcd.url, "--advertise-address=192.0.2.1")
    second = Server(folder / "b", pki, etcd.url, "--advertise-address=192.0.2.2")
    try:
        with running(first), running(second):
            yield first, second
    finally:
        etcd.kill()


def at_once(servers: tuple[Server, ...], method: str, path: str, bodies: list[Any], **headers: str) -> list[Answer]:
    """Send a body to each server, all at the same time."""
    barrier = threading.Barrier(len(servers))

    def one(server: Server, body: Any) -> Answer:
        barrier.wait(60)
        return server.request(method, path, body, **headers)

    with ThreadPoolExecutor(len(servers)) as pool:
        return list(pool.map(one, servers, bodies))


def test_what_one_server_acknowledged_the_other_reads_at_once(pair: Pair) -> None:
    with pair[0].session() as first, pair[1].session() as second:
        for number, (one, other) in zip(range(60), itertools.cycle([(first, second), (second, first)])):
            path = f"{CONFIGMAPS}/ryw-{number}"
            made = one("POST", CONFIGMAPS, {"metadata": {"name": f"ryw-{number}"}, "data": {"n": "1"}})
            assert made.status == 201
            assert other("GET", path).json == made.json
            assert f"ryw-{number}" in [each["metadata"]["name"] for each in other("GET", CONFIGMAPS).json["items"]]
            changed = other("PUT", path, {**made.json, "data": {"n": "2"}})
            assert changed.status == 200
            assert one("GET", path).json == changed.json
            assert one("DELETE", path).status == 200
            assert other("GET", path).status == 404


def test_a_watch_on_one_server_shows_the_writes_of_both_in_order_and_once(pair: Pair) -> None:
    with pair[0].session() as first, pair[1].session() as second, pair[1].session() as watching:
        start = first("GET", CONFIGMAPS).json["metadata"]["resourceVersion"]
        events = watching.events(f"{CONFIGMAPS}?watch=true&resourceVersion={start}")
        written = []
        for number in range(20):
            for one in (first, second):
                made = one("POST", CONFIGMAPS, {"metadata": {"generateName": f"order-{number}-"}})
                written.append(("ADDED", made.json))
                gone = one("DELETE", f"{CONFIGMAPS}/{made.json['metadata']['name']}")
                assert gone.status == 200
                written.append(("DELETED", made.json))
        seen = list(itertools.islice(events, len(written)))
    revisions = [int(each["object"]["metadata"]["resourceVersion"]) for each in seen]
    assert revisions == sorted(set(revisions))
    assert [(each["type"], each["object"]["metadata"]["uid"]) for each in seen] == [
        (kind, each["metadata"]["uid"]) for kind, each in written
    ]


def test_of_creates_of_one_name_on_both_servers_one_wins(pair: Pair) -> None:
    for number in range(10):
        body = {"metadata": {"name": f"race-{number}"}}
        answers = at_once(pair * 3, "POST", CONFIGMAPS, [body] * 6)
        assert Counter(each.status for each in answers) == {201: 1, 409: 5}
        assert {each.json.get("reason") for each in answers if each.status == 409} == {"AlreadyExists"}


def test_of_updates_of_one_revision_on_both_servers_one_wins_and_the_rest_conflict(pair: Pair) -> None:
    made = pair[0].request("POST", CONFIGMAPS, {"metadata": {"name": "cas"}})
    for number in range(10):
        current = pair[number % 2].request("GET", f"{CONFIGMAPS}/cas").json
        bodies = [{**current, "data": {"by": f"{number}-{i}"}} for i in range(6)]
        answers = at_once(pair * 3, "PUT", f"{CONFIGMAPS}/cas", bodies)
        assert Counter(each.status for each in answers) == {200: 1, 409: 5}
        assert {each.json["reason"] for each in answers if each.status == 409} == {"Conflict"}
        (winner,) = [each.json for each in answers if each.status == 200]
        assert all(each.request("GET", f"{CONFIGMAPS}/cas").json == winner for each in pair)
    assert made.status == 201


def test_patches_on_both_servers_are_all_applied(pair: Pair) -> None:
    pair[0].request("POST", CONFIGMAPS, {"metadata": {"name": "patched"}})
    bodies = [{"data": {f"k{i}": "v"}} for i in range(16)]
    merge = "application/merge-patch+json"
    answers = at_once(pair * 8, "PATCH", f"{CONFIGMAPS}/patched", bodies, Content_Type=merge)
    assert {each.status for each in answers} == {200}
    assert set(pair[1].request("GET", f"{CONFIGMAPS}/patched").json["data"]) == {f"k{i}" for i in range(16)}


def test_generated_names_on_both_servers_are_all_different(pair: Pair) -> None:
    body = {"metadata": {"generateName": "gen-"}}
    answers = at_once(pair * 10, "POST", CONFIGMAPS, [body] * 20)
    assert {each.status for each in answers} == {201}
    assert len({each.json["metadata"]["name"] for each in answers}) == 20


def test_addresses_and_node_ports_of_services_made_on_both_servers_are_all_different(pair: Pair) -> None:
    body = {"metadata": {"generateName": "svc-"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    answers = at_once(pair * 10, "POST", SERVICES, [body] * 20)
    assert {each.status for each in answers} == {201}, [each.body for each in answers if each.status != 201][:1]
    assert len({each.json["spec"]["clusterIP"] for each in answers}) == 20
    assert len({each.json["spec"]["ports"][0]["nodePort"] for each in answers}) == 20

    wanted = {"metadata": {"generateName": "one-"}, "spec": {"clusterIP": "10.96.77.77", "ports": [{"port": 80}]}}
    answers = at_once(pair * 3, "POST", SERVICES, [wanted] * 6)
    assert Counter(each.status for each in answers) == {201: 1, 422: 5}, [each.body for each in answers]
    assert all("provided IP is already allocated" in each.json["message"] for each in answers if each.status == 422)


def test_the_kubernetes_service_lists_both_servers_and_loses_the_one_that_stops(pair: Pair, tmp_path: Path) -> None:
    def addresses() -> list[str]:
        found = pair[0].request("GET", "/api/v1/namespaces/default/endpoints/kubernetes").json
        return [each["ip"] for subset in found.get("subsets", ()) for each in subset["addresses"]]

    assert addresses() == ["192.0.2.1", "192.0.2.2"]
    store = next(flag for flag in pair[0].command if flag.startswith("--etcd-servers=")).partition("=")[2]
    third = Server(tmp_path, pair[0].pki, store, "--advertise-address=192.0.2.3")
    with running(third):
        assert addresses() == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
        assert third.terminate() == 0
        wait_until(lambda: addresses() == ["192.0.2.1", "192.0.2.2"], "the third address is gone")


def test_keys_of_other_programs_in_the_same_etcd_do_not_hold_up_reads(pair: Pair) -> None:
    store_url = next(flag for flag in pair[0].command if flag.startswith("--etcd-servers=")).partition("=")[2]

    async def write_elsewhere() -> int:
        store = open_store(store_url)
        await store.start()
        try:
            return await store.create("/elsewhere/x", b"not ours")
        finally:
            await store.close()

    revision = asyncio.run(write_elsewhere())
    for each in pair:
        answer = each.request("GET", CONFIGMAPS)
        assert answer.status == 200
        assert int(answer.json["metadata"]["resourceVersion"]) >= revision
