"""The store on etcd beyond what all stores share: etcd away and back, several members, TLS, leases."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import shutil
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from store.tools import Etcd, free_port, take, until

from pybernetes.store import etcd as module
from pybernetes.store.base import Compacted, Entry, Event, KeyExists, RevisionMismatch, StoreUnavailable
from pybernetes.store.etcd import EtcdStore


@contextlib.asynccontextmanager
async def connected(*endpoints: str, **options: object) -> AsyncIterator[EtcdStore]:
    store = EtcdStore(endpoints, **options)  # type: ignore[arg-type]
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def test_two_stores_see_each_others_writes_and_watches(etcd: Etcd, prefix: str) -> None:
    async with connected(etcd.url) as one, connected(etcd.url) as two:
        watch = two.watch(prefix, after=await two.revision())
        revision = await one.create(prefix + "a", b"1")
        assert await two.get(prefix + "a") == Entry(prefix + "a", b"1", revision)
        assert await take(watch, 1) == [Event(prefix + "a", b"1", revision, None)]
        with pytest.raises(KeyExists):
            await two.create(prefix + "a", b"2")
        await two.update(prefix + "a", b"2", revision=revision)
        with pytest.raises(RevisionMismatch):
            await one.update(prefix + "a", b"3", revision=revision)


async def test_etcd_killed_under_writers_and_a_watch_loses_nothing_and_repeats_nothing(
    own_etcd: Etcd, prefix: str
) -> None:
    acknowledged: dict[int, tuple[str, bytes | None]] = {}
    seen: list[Event] = []
    done = False
    async with connected(own_etcd.url) as store:
        watch = store.watch(prefix, after=await store.revision())

        async def write(name: str) -> int:
            unknown = number = 0
            while not done:
                number += 1
                key = f"{prefix}{name}-{number:06}"
                try:
                    acknowledged[await store.create(key, b"1")] = key, b"1"
                except StoreUnavailable:
                    unknown += 1
            return unknown

        async def read() -> None:
            async for batch in watch:
                assert len({event.revision for event in batch}) == len(batch)
                seen.extend(batch)

        async def more() -> None:
            enough = len(acknowledged) + 200
            await until(lambda: len(acknowledged) >= enough)

        writers = [asyncio.create_task(write(str(number))) for number in range(4)]
        reader = asyncio.create_task(read())
        for _ in range(3):
            await more()
            await asyncio.to_thread(own_etcd.kill)
            await asyncio.sleep(0.1)
            own_etcd.start()
        await more()
        done = True
        unknown = sum(await asyncio.gather(*writers))
        last = max(acknowledged)
        await until(lambda: seen and seen[-1].revision >= last)
        await watch.close()
        await asyncio.wait_for(reader, 30)
        revisions = [event.revision for event in seen]
        assert revisions == sorted(set(revisions))
        assert acknowledged.items() <= {event.revision: (event.key, event.value) for event in seen}.items()
        assert len(seen) <= len(acknowledged) + unknown
        found = {entry.revision: (entry.key, entry.value) for entry in (await store.range(prefix)).entries}
        assert found == {event.revision: (event.key, event.value) for event in seen}


async def test_etcd_away_is_reported_in_bounded_time_and_coming_back_is_noticed(own_etcd: Etcd, prefix: str) -> None:
    async with connected(own_etcd.url, patience=0.5) as store:
        first = await store.create(prefix + "a", b"1")
        own_etcd.kill()
        for operation in (
            store.create(prefix + "b", b""),
            store.update(prefix + "a", b"", revision=first),
            store.get(prefix + "a"),
            store.range(prefix),
            store.revision(),
            store.check(),
        ):
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(operation, 30)
        own_etcd.start()
        async with asyncio.timeout(20):
            while True:
                try:
                    await store.check()
                    break
                except StoreUnavailable:
                    continue
        assert await store.get(prefix + "a") == Entry(prefix + "a", b"1", first)
        assert await store.create(prefix + "b", b"") > first


async def test_a_request_waits_for_etcd_to_come_back(own_etcd: Etcd, prefix: str) -> None:
    async with connected(own_etcd.url, patience=20) as store:
        own_etcd.kill()
        await until(lambda: not store._client._members[0].up())
        writer = asyncio.create_task(store.create(prefix + "b", b""))
        reader = asyncio.create_task(store.range(prefix))
        await asyncio.sleep(0.1)
        own_etcd.start()
        await asyncio.wait_for(writer, 20)
        await asyncio.wait_for(reader, 20)


async def test_no_etcd_at_the_start_is_one_clear_refusal() -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    store = EtcdStore([endpoint], patience=0.3)
    with pytest.raises(StoreUnavailable, match=endpoint):
        await asyncio.wait_for(store.start(), 30)
    await store.close()


async def test_a_dead_endpoint_is_passed_over(etcd: Etcd, prefix: str) -> None:
    async with connected(f"http://127.0.0.1:{free_port()}", etcd.url) as store:
        revision = await store.create(prefix + "a", b"1")
        assert await take(store.watch(prefix, after=revision - 1), 1) == [Event(prefix + "a", b"1", revision, None)]


async def test_a_cluster_of_three_goes_on_when_the_member_in_use_dies(tmp_path: Path, prefix: str) -> None:
    members = [Etcd(tmp_path / str(number), name=f"m{number}") for number in range(3)]
    cluster = ",".join(f"{member.name}={member.peer}" for member in members)
    try:
        for member in members:
            member.folder.mkdir()
            member.start(**{"initial-cluster": cluster})
        for member in members:
            await asyncio.to_thread(member.wait)
        async with connected(*(member.url for member in members)) as store:
            watch = store.watch(prefix, after=await store.revision())
            first = await store.create(prefix + "a", b"1")
            members[0].kill()
            async with asyncio.timeout(30):
                while True:
                    with contextlib.suppress(StoreUnavailable, KeyExists):
                        await store.create(prefix + "b", b"2")
                    if await store.get(prefix + "b"):
                        break
            events = await take(watch, 2)
            assert [(event.key[-1], event.value) for event in events] == [("a", b"1"), ("b", b"2")]
            assert events[0].revision == first
    finally:
        for member in members:
            member.kill()


async def test_a_watch_cut_off_until_its_start_is_compacted_says_so(own_etcd: Etcd, prefix: str) -> None:
    async with connected(own_etcd.url) as store:
        watch = store.watch(prefix, after=await store.revision())
        first = await store.create(prefix + "a", b"1")
        second = await store.update(prefix + "a", b"2", revision=first)
        third = await store.update(prefix + "a", b"3", revision=second)
        await store.compact(third)
        with pytest.raises(Compacted) as refused:
            await take(watch, 1)
        assert refused.value.compacted == third


async def test_keys_that_end_together_share_a_lease(etcd: Etcd, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(etcd.url) as store:
        leases = [await store._leases.take(3600) for _ in range(10)]
        assert len(set(leases)) == 1
        assert await store._leases.take(1800) not in leases
        monkeypatch.setattr(module, "LEASE_KEYS", 10)
        assert await store._leases.take(3600) not in leases


async def test_a_lease_that_etcd_forgot_is_replaced(etcd: Etcd, prefix: str) -> None:
    async with connected(etcd.url) as store:
        await store.create(prefix + "a", b"", ttl=600)
        lease, end, keys = store._leases._last[600]
        store._leases._last[600] = lease + 1, end, keys
        revision = await store.create(prefix + "b", b"", ttl=600)
        assert await store.get(prefix + "b") == Entry(prefix + "b", b"", revision)


async def test_a_value_too_large_for_etcd_is_refused_with_its_reason(etcd: Etcd, prefix: str) -> None:
    async with connected(etcd.url) as store:
        with pytest.raises(StoreUnavailable, match="too large"):
            await store.create(prefix + "a", b"x" * 1_800_000)
        assert await store.get(prefix + "a") is None


async def test_a_range_larger_than_a_page_is_one_snapshot(
    etcd: Etcd, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    async with connected(etcd.url) as store:
        for number in range(10):
            await store.create(f"{prefix}{number}", b"")
        page = await store.range(prefix)
        assert [entry.key[-1] for entry in page.entries] == list("0123456789")
        assert (page.remaining, page.revision) == (0, await store.revision())
        page = await store.range(prefix, limit=7)
        assert (len(page.entries), page.remaining) == (7, 3)


async def test_tls_with_client_certificates(tmp_path: Path, prefix: str) -> None:
    files = make_certificates(tmp_path)
    server = Etcd(tmp_path, scheme="https")
    server.start(
        **{
            "cert-file": files["server.crt"],
            "key-file": files["server.key"],
            "trusted-ca-file": files["ca.crt"],
            "client-cert-auth": "true",
        }
    )
    context = ssl.create_default_context(cafile=files["ca.crt"])
    context.load_cert_chain(files["client.crt"], files["client.key"])
    try:
        await asyncio.to_thread(server.wait, context)
        tls = {"ca_file": files["ca.crt"], "cert_file": files["client.crt"], "key_file": files["client.key"]}
        async with connected(server.url, **tls) as store:
            revision = await store.create(prefix + "a", b"1")
            assert await store.get(prefix + "a") == Entry(prefix + "a", b"1", revision)
        stranger = EtcdStore([server.url], ca_file=files["ca.crt"], patience=1)
        with pytest.raises(StoreUnavailable):
            await stranger.start()
        await stranger.close()
        with pytest.raises(StoreUnavailable, match=r"missing\.crt"):
            await EtcdStore([server.url], ca_file=str(tmp_path / "missing.crt")).start()
    finally:
        server.kill()


def test_etcd_is_there_for_the_tests() -> None:
    assert shutil.which("etcd")


def make_certificates(folder: Path) -> dict[str, str]:
    now = datetime.datetime.now(datetime.UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ca")])
    files = {}
    for name in ("ca", "server", "client"):
        key = ca_key if name == "ca" else ec.generate_private_key(ec.SECP256R1())
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(ca_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
        )
        files[f"{name}.crt"] = str(folder / f"{name}.crt")
        files[f"{name}.key"] = str(folder / f"{name}.key")
        certificate = builder.sign(ca_key, hashes.SHA256())
        (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (folder / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    return files
