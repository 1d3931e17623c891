"""Images of the nodes that run, on either runtime: given to them, listed, removed."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import archives
from pybernetes.cluster.layout import Layout

if TYPE_CHECKING:
    from pybernetes.cluster.node.machine import Machine

_ID = re.compile(r"(?:sha256:)?([0-9a-f]{12,64})")


@dataclass(frozen=True)
class Node:
    """A node that runs: its init process, and what it is made of."""

    init: int
    machine: Machine

    @property
    def has_containerd(self) -> bool:
        """Whether that is its runtime; else it is our own."""
        from pybernetes.cluster.node import containerd

        return self.machine.socket == containerd.SOCKET

    @property
    def socket(self) -> str:
        """Where its container runtime answers."""
        from pybernetes.cluster.node import inside

        return self.machine.socket if self.machine.isolation == "none" else inside.path(self.init, self.machine.socket)


def running(layout: Layout) -> dict[str, Node]:
    """The nodes that run."""
    from pybernetes.cluster.node import inside
    from pybernetes.cluster.node.machine import Machine

    found = {}
    for path in sorted(layout.data.glob("nodes/*/machine.json")):
        machine = Machine.read(str(path))
        init = inside.init_process(layout, machine.name, plain=machine.isolation == "none")
        if init is not None:
            found[machine.name] = Node(init, machine)
    return found


def give(layout: Layout, archive: Path, name: str = "") -> None:
    """Has all nodes take an archive of DATA/images in; `name` is the one to ask for, if it matters which."""
    from pybernetes.cluster.node import boot

    nodes = running(layout)
    imports = [(name, boot.import_archive(node.init, archive)) for name, node in nodes.items() if node.has_containerd]
    for name, process in imports:
        boot.finish_import(layout, name, archive, process)
    for node in nodes.values():
        if not node.has_containerd:
            asyncio.run(_take_in(node, name or archives.names(archive)[0]))
    if not nodes:
        print("No node runs: they get it when the cluster starts.")


def table(nodes: dict[str, Node]) -> list[tuple[str, str, str, str]]:
    """The images of nodes: name, id, size and which nodes have it."""
    return asyncio.run(_table(nodes))


def remove(nodes: dict[str, Node], name: str) -> dict[str, list[str]]:
    """Removes an image, by its full name or id, with all its names; those names, by the nodes that had it."""
    return asyncio.run(_remove(nodes, name))


def prune(nodes: dict[str, Node]) -> dict[str, list[tuple[str, int]]]:
    """Removes images without a name that no container uses; the id and size of each, by node."""
    return asyncio.run(_prune(nodes))


def as_id(name: str) -> str:
    """The id, or the beginning of one, that `image ls` shows; nothing if it is a name."""
    match = _ID.fullmatch(name)
    return match[1] if match else ""


async def _take_in(node: Node, name: str) -> None:
    """Our own runtime looks into the folder of archives itself when it is asked for an image."""
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.errors import CRIError
    from pybernetes.cri.remote import Runtime

    async with Runtime(node.socket) as runtime:
        try:
            await runtime.pull_image(cri.PullImageRequest(image=cri.ImageSpec(image=name)))
        except CRIError as error:
            raise ClusterError(f"a node cannot import {name}: {error.message}") from None


async def _table(nodes: dict[str, Node]) -> list[tuple[str, str, str, str]]:
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.remote import Runtime

    where: dict[tuple[str, str, str], list[str]] = {}
    for each, node in nodes.items():
        async with Runtime(node.socket) as runtime:
            answer = await runtime.list_images(cri.ListImagesRequest())
        for image in answer.images:
            for name in image.repo_tags or image.repo_digests or ["<none>"]:
                row = (name, image.id.removeprefix("sha256:")[:12], f"{image.size / 1e6:.1f} MB")
                where.setdefault(row, []).append(each)
    return [(*row, ", ".join(having)) for row, having in sorted(where.items())]


async def _remove(nodes: dict[str, Node], name: str) -> dict[str, list[str]]:
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.remote import Runtime

    gone = {}
    for each, node in nodes.items():
        async with Runtime(node.socket) as runtime:
            for image in (await runtime.list_images(cri.ListImagesRequest())).images:
                short = as_id(name)
                if name in image.repo_tags or (short and image.id.removeprefix("sha256:").startswith(short)):
                    await runtime.remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=image.id)))
                    gone[each] = list(image.repo_tags)
    return gone


async def _prune(nodes: dict[str, Node]) -> dict[str, list[tuple[str, int]]]:
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.remote import Runtime

    removed: dict[str, list[tuple[str, int]]] = {}
    for each, node in nodes.items():
        async with Runtime(node.socket) as runtime:
            containers = (await runtime.list_containers(cri.ListContainersRequest())).containers
            used = {id for container in containers for id in (container.image_ref, container.image_id)}
            for image in (await runtime.list_images(cri.ListImagesRequest())).images:
                names = {image.id, *image.repo_digests}
                if not image.repo_tags and not image.pinned and not names & used:
                    await runtime.remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=image.id)))
                    removed.setdefault(each, []).append((image.id, image.size))
    return removed
