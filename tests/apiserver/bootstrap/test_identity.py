"""Every API server has a Lease that says that it is alive, and those of the dead are removed."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from apiserver.registry.allocators.servers import Server, server, shared_store

from pybernetes.api.coordination.v1 import Lease, LeaseSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.apiserver.bootstrap.identity import Identity, expired, server_name
from pybernetes.apiserver.bootstrap.objects import create


def leases(api: Server) -> dict[str, dict[str, Any]]:
    store = api.registry.store("coordination.k8s.io", "v1", "leases")
    found = [json.loads(item.raw) for item in store.partition.items.values()]
    return {each["metadata"]["name"]: each for each in found}


def test_the_name_is_the_one_upstream_gives_to_a_machine() -> None:
    assert server_name("vm") == "apiserver-wlv32tlttr4jl3gtroqexyxapa"


async def test_the_lease_says_who_where_and_until_when() -> None:
    async with server() as api:
        identity = Identity(api.registry, "2001:db8::1", 6443)
        await identity.renew()
        lease = leases(api)[identity.name]
        assert lease["metadata"]["namespace"] == "kube-system"
        assert lease["metadata"]["labels"] == {
            "apiserver.kubernetes.io/identity": "kube-apiserver",
            "kubernetes.io/hostname": socket.gethostname(),
        }
        assert lease["metadata"]["annotations"] == {"kubernetes.io/peer-advertise-address": "[2001:db8::1]:6443"}
        assert [each["manager"] for each in lease["metadata"]["managedFields"]] == ["kube-apiserver"]
        holder, _, unique = lease["spec"]["holderIdentity"].partition("_")
        assert (holder, len(unique)) == (identity.name, 36)
        assert lease["spec"]["leaseDurationSeconds"] == 3600
        assert len(lease["spec"]["renewTime"]) == len("2026-01-01T00:00:00.000000Z")


async def test_a_renewal_changes_the_time_and_puts_right_what_others_changed() -> None:
    async with server() as api:
        identity = Identity(api.registry, "192.0.2.2", 6443)
        await identity.renew()
        before = leases(api)[identity.name]
        api.registry.clock = type("Later", (), {"now": staticmethod(lambda: 4e9)})()
        await identity.renew()
        after = leases(api)[identity.name]
        assert after["spec"]["renewTime"] == "2096-10-02T07:06:40.000000Z"
        assert after["spec"]["holderIdentity"] == before["spec"]["holderIdentity"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_server_that_stops_takes_its_lease_away() -> None:
    async with server() as api:
        identity = Identity(api.registry, "192.0.2.2", 6443)
        await identity.renew()
        await identity.withdraw()
        assert leases(api) == {}
        await identity.withdraw()


async def test_leases_of_servers_that_are_gone_are_removed_and_no_others() -> None:
    async with server() as api:
        store = api.registry.store("coordination.k8s.io", "v1", "leases")
        identity = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
        old, new = "2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"
        for name, labels, time, namespace in (
            ("dead", identity, old, "kube-system"),
            ("of-the-year-0", identity, "0000-02-29T00:00:00.000000Z", "kube-system"),
            ("never-renewed", identity, None, "kube-system"),
            ("alive", identity, new, "kube-system"),
            ("of-a-controller", None, old, "kube-system"),
            ("elsewhere", identity, old, "default"),
        ):
            spec = LeaseSpec(holder_identity="x", lease_duration_seconds=3600, renew_time=time)
            meta = ObjectMeta(name=name, namespace=namespace, labels=labels)
            await create(api.registry, store, Lease(metadata=meta, spec=spec))
        await Identity(api.registry, "192.0.2.2", 6443).collect()
        assert set(leases(api)) == {"alive", "of-a-controller", "elsewhere"}


@pytest.mark.parametrize(
    ("spec", "gone"),
    [
        (None, True),
        (LeaseSpec(renew_time="1970-01-01T00:00:00.000000Z"), True),
        (LeaseSpec(lease_duration_seconds=10), True),
        (LeaseSpec(lease_duration_seconds=10, renew_time="1970-01-01T00:00:00.000000Z"), True),
        (LeaseSpec(lease_duration_seconds=100, renew_time="1970-01-01T00:00:00.000000Z"), False),
    ],
)
def test_a_lease_has_expired_when_its_duration_is_over(spec: LeaseSpec | None, gone: bool) -> None:
    assert expired(Lease(spec=spec), 50.0) is gone


async def test_a_lease_that_is_renewed_in_the_moment_of_its_removal_stays() -> None:
    async with server() as api:
        back = Identity(api.registry, "192.0.2.2", 6443)
        spec = LeaseSpec(holder_identity="x", lease_duration_seconds=3600, renew_time="2001-01-01T00:00:00.000000Z")
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
        meta = ObjectMeta(name=back.name, namespace="kube-system", labels=labels)
        store = api.registry.store("coordination.k8s.io", "v1", "leases")
        await create(api.registry, store, Lease(metadata=meta, spec=spec))
        other = Identity(api.registry, "192.0.2.3", 6443)
        delete = other._delete

        async def late(name: str, version: str | None = None) -> None:
            await back.renew()  # after the other has seen that it is old
            await delete(name, version)

        other._delete = late  # type: ignore[method-assign]
        await other.collect()
        assert set(leases(api)) == {back.name}


async def test_servers_on_one_store_do_not_remove_what_another_has_just_renewed() -> None:
    async with shared_store() as store, server(store) as one, server(store) as two:
        identity = Identity(one.registry, "192.0.2.2", 6443)
        await identity.renew()
        await two.registry.cache.consistent()
        seen = leases(two)
        assert set(seen) == {identity.name}
        await Identity(two.registry, "192.0.2.3", 6443).collect()
        await one.registry.cache.consistent()
        assert set(leases(one)) == {identity.name}
