"""Images of the nodes that run, on either runtime: given to them, listed, removed."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import archives
from pybernetes.cluster.layout import Layout

_ID = re.compile(r"(?:sha256:)?([0-9a-f]{12,64})")


def running(layout: Layout) -> dict[str, int]:
    """The init processes of the nodes that run."""
    from pybernetes.cluster.node import inside

    names = [path.parent.name for path in sorted(layout.data.glob("nodes/*/machine.json"))]
    found = {name: inside.init_process(layout, name) for name in names}
    return {name: init for name, init in found.items() if init is not None}


def give(layout: Layout, archive: Path) -> None:
    """Has all nodes take an archive of DATA/images in."""
    from pybernetes.cluster.node import boot

    nodes = running(layout)
    imports = [(name, boot.import_archive(init, archive)) for name, init in nodes.items() if _has_containerd(init)]
    for name, process in imports:
        boot.finish_import(layout, name, archive, process)
    for init in nodes.values():
        if not _has_containerd(init):
            asyncio.run(_take_in(init, archives.names(archive)[0]))
    if not nodes:
        print("No node runs: they get it when the cluster starts.")


def table(nodes: dict[str, int]) -> list[tuple[str, str, str, str]]:
    """The images of nodes: name, id, size and which nodes have it."""
    return asyncio.run(_table(nodes))


def remove(nodes: dict[str, int], name: str) -> dict[str, list[str]]:
    """Removes an image, by its full name or id, with all its names; those names, by the nodes that had it."""
    return asyncio.run(_remove(nodes, name))


def as_id(name: str) -> str:
    """The id, or the beginning of one, that `image ls` shows; nothing if it is a name."""
    match = _ID.fullmatch(name)
    return match[1] if match else ""


def _has_containerd(init: int) -> bool:
    from pybernetes.cluster.node import containerd, inside

    return os.path.exists(inside.path(init, containerd.SOCKET))


def _socket(init: int) -> str:
    """Where the container runtime of a node answers."""
    from pybernetes.cluster.node import containerd, embedded, inside

    return inside.path(init, containerd.SOCKET if _has_containerd(init) else embedded.SOCKET)


async def _take_in(init: int, name: str) -> None:
    """Our own runtime looks into the folder of archives itself when it is asked for an image."""
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.errors import CRIError
    from pybernetes.cri.remote import Runtime

    async with Runtime(_socket(init)) as runtime:
        try:
            await runtime.pull_image(cri.PullImageRequest(image=cri.ImageSpec(image=name)))
        except CRIError as error:
            raise ClusterError(f"a node cannot import {name}: {error.message}") from None


async def _table(nodes: dict[str, int]) -> list[tuple[str, str, str, str]]:
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.remote import Runtime

    where: dict[tuple[str, str, str], list[str]] = {}
    for node, init in nodes.items():
        async with Runtime(_socket(init)) as runtime:
            answer = await runtime.list_images(cri.ListImagesRequest())
        for image in answer.images:
            for name in image.repo_tags or image.repo_digests or ["<none>"]:
                row = (name, image.id.removeprefix("sha256:")[:12], f"{image.size / 1e6:.1f} MB")
                where.setdefault(row, []).append(node)
    return [(*row, ", ".join(nodes)) for row, nodes in sorted(where.items())]


async def _remove(nodes: dict[str, int], name: str) -> dict[str, list[str]]:
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.remote import Runtime

    gone = {}
    for node, init in nodes.items():
        async with Runtime(_socket(init)) as runtime:
            for image in (await runtime.list_images(cri.ListImagesRequest())).images:
                short = as_id(name)
                if name in image.repo_tags or (short and image.id.removeprefix("sha256:").startswith(short)):
                    await runtime.remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=image.id)))
                    gone[node] = list(image.repo_tags)
    return gone
