"""Every namespace has a default account and the server's CA."""

from __future__ import annotations

from pathlib import Path

from controllers.conftest import MakeHarness

from pybernetes.api.core.v1 import ConfigMap, ServiceAccount
from pybernetes.controllers.options import Options

NAME = "kube-root-ca.crt"


async def test_the_default_account_is_made_again_when_deleted(harness: MakeHarness) -> None:
    async with harness("serviceaccount-controller") as h:
        first = await h.get(ServiceAccount, "default")
        assert first is not None
        assert first.metadata is not None
        await h.client.delete(ServiceAccount, "default", h.namespace)

        async def another() -> bool:
            found = await h.get(ServiceAccount, "default")
            return found is not None and found.metadata.uid != first.metadata.uid  # type: ignore[union-attr]

        await h.until(another)


async def test_every_namespace_has_the_servers_authority(harness: MakeHarness) -> None:
    async with harness("root-ca-certificate-publisher-controller") as h:

        async def published() -> ConfigMap | None:
            return await h.get(ConfigMap, NAME)

        found = await h.until(published)
        assert found is not None
        assert (found.data or {})["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
        annotations = (found.metadata.annotations if found.metadata else None) or {}
        assert annotations["kubernetes.io/description"].startswith("Contains")


async def test_the_authority_is_restored_when_changed_or_deleted(harness: MakeHarness, tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_text("mine")
    async with harness("root-ca-certificate-publisher-controller", options=Options(root_ca_file=str(path))) as h:

        async def right() -> bool:
            found = await h.get(ConfigMap, NAME)
            return found is not None and found.data == {"ca.crt": "mine"}

        await h.until(right)
        await h.client.patch(ConfigMap, NAME, {"data": {"ca.crt": "x", "more": "y"}}, h.namespace)
        await h.until(right)
        await h.client.delete(ConfigMap, NAME, h.namespace)
        await h.until(right)
