"""Images of attackers: any entries in a layer, any configuration."""

from __future__ import annotations

import asyncio
import io
import itertools
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cri.embedded.machine import EmbeddedMachine
from escape.pods import Pod
from node.containerd_machine import ContainerdMachine
from node.machine import Machine

from pybernetes.cluster.images import builtin, oci
from pybernetes.cri.errors import CRIError

_numbers = itertools.count()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", text: str = "", **more: Any) -> tuple[Any, bytes]:
    """An entry of a layer."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o755
    for key, value in more.items():
        setattr(info, key, value)
    data = text.encode()
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def image(machine: Machine, entries: Sequence[tuple[Any, bytes]] = (), *, busybox: bool = True, **config: Any) -> str:
    """Gives the runtime an image of busybox with more entries; its name. Raises if the runtime refuses it."""
    layers = []
    if busybox:
        program = builtin.busybox_program()
        assert program is not None
        plain = io.BytesIO()
        taken = {info.name.strip("/").split("/")[0] for info, _ in entries}
        oci.write_layer(plain, [each for each in builtin.busybox_entries(program) if each.path.strip("/") not in taken])
        layers.append(plain.getvalue())
    if entries:
        own = io.BytesIO()
        with tarfile.open(fileobj=own, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for info, data in entries:
                archive.addfile(info, io.BytesIO(data))
        layers.append(own.getvalue())
    name = f"docker.io/library/attack-{next(_numbers)}:1"
    document = {
        "architecture": oci.this_architecture(),
        "os": "linux",
        "config": {"Env": [oci.PATH], "Cmd": ["sleep", "1000"], **config},
        "rootfs": {"type": "layers", "diff_ids": [oci.digest(each) for each in layers]},
    }
    blobs = [
        oci.Blob(oci.PLAIN_LAYER, oci.digest(each), len(each), lambda each=each: io.BytesIO(each))  # type: ignore[misc]
        for each in layers
    ]
    archive_path = machine.folder / f"attack-{next(_numbers)}.tar"
    with open(archive_path, "wb") as out:
        oci.write_layout(out, [name], document, blobs)
    _take_in(machine, archive_path, name)
    return name


def who(pod: Pod, name: str, **more: Any) -> str:
    """User and group of a container of an image; empty if it could not be started."""
    try:
        id = pod.sleeper(image=name, **more)
    except CRIError:
        return ""
    return pod.sh(id, "id -u; id -g").text


def _take_in(machine: Machine, path: Path, name: str) -> None:
    if isinstance(machine, EmbeddedMachine):
        path.rename(machine.images / path.name)
        asyncio.run(machine._take_in(name))
        return
    assert isinstance(machine, ContainerdMachine)
    subprocess.run([*machine.ctr(), "images", "import", str(path)], check=True, capture_output=True, timeout=60)
