"""An image whose layers are elsewhere: the password of its registry is not shown there, nor is that place asked.

Vector: CVE-2020-15157 (credentials went to the URL that a manifest names).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cri.embedded.images.registries import PASSWORD, USER, FakeRegistry, digest, layer

from pybernetes.cluster.images import oci
from pybernetes.cri.embedded.images.pulling import PullError, pull
from pybernetes.cri.embedded.images.registry import Credentials
from pybernetes.cri.embedded.images.store import ImageStore

KINDS = (
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.v1.tar",
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_place_that_a_manifest_names_is_not_asked(tmp_path: Path, kind: str) -> None:
    with FakeRegistry().serving() as registry, FakeRegistry().serving() as elsewhere:
        content = layer(name="x")
        urls = [f"http://{elsewhere.host}/layer"]
        descriptor = {"mediaType": kind, "digest": digest(content), "size": len(content), "urls": urls}
        config = registry.blob(oci.CONFIG, b'{"rootfs":{"type":"layers","diff_ids":["%s"]}}' % digest(content).encode())
        manifest = {"schemaVersion": 2, "mediaType": oci.MANIFEST, "config": config, "layers": [descriptor]}
        registry.manifest("1", oci.MANIFEST, manifest)
        with pytest.raises(PullError):
            pull(ImageStore(tmp_path / "images"), [], f"{registry.host}/a/b:1", Credentials(USER, PASSWORD))
        assert elsewhere.requests == []
