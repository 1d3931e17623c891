"""What pods use on the node's disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from pybernetes.api.core.v1 import CSIVolumeSource, EmptyDirVolumeSource, HostPathVolumeSource, Pod, PodSpec, Volume
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.kubelet.eviction.source import NodeSource


def test_neither_a_host_path_nor_a_drivers_volume_is_walked_or_counted(tmp_path: Path) -> None:
    host = tmp_path / "host"
    host.mkdir()
    (host / "large").write_bytes(bytes(1 << 20))
    folder = tmp_path / "pods/u1/volumes/kubernetes.io~empty-dir/own"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(bytes(1 << 16))
    (tmp_path / "pods/u1/volumes/kubernetes.io~csi/inline/mount").mkdir(parents=True)
    none = cast(Any, None)
    source = NodeSource(tmp_path, tmp_path, cgroups=none, reader=none, runtime=none, pod_logs=lambda _: tmp_path / "no")
    volumes = [
        Volume(name="host", host_path=HostPathVolumeSource(path=str(host))),
        Volume(name="inline", csi=CSIVolumeSource(driver="d")),
        Volume(name="own", empty_dir=EmptyDirVolumeSource()),
    ]
    found, _, _ = source._measure(Pod(metadata=ObjectMeta(uid="u1"), spec=PodSpec(volumes=volumes)))
    assert list(found) == ["own"]
    assert found["own"].bytes >= 1 << 16
