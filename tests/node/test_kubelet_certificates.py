"""A kubelet's certificates, signed by a real cluster: the first one, and each one after it."""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from node.cluster import Cluster

from pybernetes import pki
from pybernetes.api.authentication.v1 import SelfSubjectReview
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.clock import JumpingClock, SystemClock
from pybernetes.kubelet.node.bootstrap import bootstrap
from pybernetes.kubelet.node.certificates import CLIENT_SIGNER, CertificateStore, Pair, Rotation


async def _who(kubeconfig: Path) -> tuple[str | None, list[str]]:
    async with Client(config.load(str(kubeconfig)), program="kubelet") as client:
        answer = await client.create(SelfSubjectReview())
    assert answer.status is not None
    assert answer.status.user_info is not None
    return answer.status.user_info.username, answer.status.user_info.groups or []


async def test_who_may_ask_gets_a_certificate_and_is_then_itself(node: Cluster, tmp_path: Path) -> None:
    store = CertificateStore(tmp_path / "pki", "kubelet-client")
    kubeconfig = tmp_path / "kubelet.conf"
    administrator = Path(node.environment["KUBECONFIG"])
    await bootstrap(kubeconfig, administrator, "new-node", store, SystemClock())
    name, groups = await _who(kubeconfig)
    assert name == "system:node:new-node"
    assert "system:nodes" in groups
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    assert store.current.stat().st_mode & 0o777 == 0o600
    before = store.current.resolve()
    await bootstrap(kubeconfig, tmp_path / "not-needed", "new-node", store, SystemClock())
    assert store.current.resolve() == before


async def test_a_certificate_is_renewed_before_it_ends_and_used_at_once(node: Cluster, tmp_path: Path) -> None:
    clock = JumpingClock()
    store = CertificateStore(tmp_path / "pki", "kubelet-client")
    used: list[Pair] = []
    got = asyncio.Event()

    def use(pair: Pair) -> None:
        used.append(pair)
        got.set()

    async with node.client() as client:
        rotation = Rotation(
            client,
            clock,
            "other-node",
            store,
            use,
            signer=CLIENT_SIGNER,
            usages=("digital signature", "client auth"),
        )
        running = asyncio.create_task(rotation.run())
        try:
            await asyncio.wait_for(got.wait(), 30)
            got.clear()
            begin, end = used[0].life
            clock.advance((end - begin) * 0.65)
            await asyncio.sleep(0.1)
            assert not got.is_set()  # not yet
            clock.advance((end - begin) * 0.26)
            await asyncio.wait_for(got.wait(), 30)
            assert used[1].certificate != used[0].certificate
            assert store.load() == used[1]
            client.transport.use_certificate(used[1].certificate, used[1].key)
        finally:
            running.cancel()
    async with node.client() as client:
        client.transport.use_certificate(used[1].certificate, used[1].key)
        answer = await client.create(SelfSubjectReview())
        assert answer.status is not None
        assert answer.status.user_info is not None
        assert answer.status.user_info.username == "system:node:other-node"


async def test_a_certificate_renewed_by_another_process_is_used(tmp_path: Path) -> None:
    authority = pki.create_authority("ca")
    old, new = (_pair(authority, days) for days in (10, 20))
    clock = JumpingClock()
    found: list[Pair | None] = [None]
    used: list[Pair] = []
    got = asyncio.Event()

    def use(pair: Pair) -> None:
        used.append(pair)
        got.set()

    rotation = Rotation(
        cast(Client, None),
        clock,
        "n",
        CertificateStore(tmp_path, "kubelet-client"),
        use,
        signer=CLIENT_SIGNER,
        usages=(),
        initial=old,
        reread=lambda: found[0],
    )
    running = asyncio.create_task(rotation.run())
    try:
        await asyncio.sleep(0.05)
        assert not used
        found[0] = new
        clock.advance(301.0)
        await asyncio.wait_for(got.wait(), 30)
        assert used == [new]
    finally:
        running.cancel()


def _pair(authority: pki.Identity, days: int) -> Pair:
    """A certificate that is good for so many days from now."""
    key = pki.new_key()
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "n")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=days))
    certificate = builder.sign(authority.key, hashes.SHA256())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), pki.private_pem(key))
