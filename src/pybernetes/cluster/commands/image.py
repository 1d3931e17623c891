"""`pyb image`: the images of a cluster's nodes.

What is imported or made is kept in the data of the cluster, so that nodes which come later get it too. Names are as in
a pod: `nginx:1.22.1` is `docker.io/library/nginx:1.22.1`. With `imagePullPolicy: Always`, which is the default for
`latest`, the node's own registry is asked first: it has what is kept here (`node/mirror.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import bz2
import gzip
import json
import lzma
import os
import shutil
import sys
import tarfile
import zlib
from pathlib import Path
from typing import Any

from pybernetes.cluster import files
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import builtin, oci, store
from pybernetes.cluster.layout import Layout, locate


def main(argv: list[str]) -> int:
    """Runs one of the subcommands."""
    arguments = _parse(argv)
    layout = locate(arguments.name, arguments.data_dir)
    record = layout.read_record()
    if record is None and not arguments.adds:
        raise ClusterError(f"there is no cluster {layout.name!r}; `{program()} up` makes one")
    try:
        layout.claim()
        if record is None:
            layout.prepare()  # images may be there before the cluster's first start
        with layout.lock():
            return int(arguments.run(layout, arguments))
    except OSError as error:
        raise ClusterError(f"{error.filename or layout.images}: {error.strerror or error}") from error


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"{program()} image", description="The images of a cluster's nodes.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        flags.add(made)
        return made

    made = command("from-package", "Makes an image of an installed Debian package and all it links to.")
    made.add_argument("package")
    made.add_argument(
        "--tag", action="append", default=[], metavar="NAME:TAG", help="instead of PACKAGE:VERSION and PACKAGE:latest"
    )
    made.add_argument("--command", nargs="+", default=[], metavar="WORD", help="what a container of it runs")
    made.set_defaults(run=_from_package, adds=True)
    made = command("import", "Imports an archive (OCI or docker) into all nodes.")
    made.add_argument("file", type=Path)
    made.set_defaults(run=_import, adds=True)
    made = command("pull", "Loads an image from its registry and gives it to all nodes.")
    made.add_argument("image")
    made.add_argument("--username", default="", help="instead of what `docker login` left")
    made.add_argument("--password-stdin", action="store_true", help="reads the password")
    made.set_defaults(run=_pull, adds=True)
    made = command("export", "Writes an image that was pulled, imported or made here as an archive (OCI).")
    made.add_argument("image")
    made.add_argument("file", type=Path)
    made.set_defaults(run=_export, adds=False)
    made = command("ls", "Lists the images of the nodes.")
    made.set_defaults(run=_list, adds=False)
    made = command("rm", "Removes an image, with all its names, from all nodes.")
    made.add_argument("image")
    made.set_defaults(run=_remove, adds=False)
    return parser.parse_args(argv)


def _from_package(layout: Layout, arguments: argparse.Namespace) -> int:
    from pybernetes.cluster.images import package

    names = [_full_name(name) for name in arguments.tag]
    image, left_out = package.image(arguments.package, names, arguments.command)
    files.make_private_folder(layout.images)
    archive = store.archive_path(layout, image.names[0])
    oci.write(archive, image)
    for path in left_out:
        print(f"Left out, as not everybody may read it: {path}")
    _give_to_nodes(layout, archive)
    print(f"Image {', '.join(image.names)} ({archive.stat().st_size / 1e6:.1f} MB) runs: {' '.join(image.command)}")
    return 0


def _import(layout: Layout, arguments: argparse.Namespace) -> int:
    names = archive_names(arguments.file)
    files.make_private_folder(layout.images)
    archive = store.archive_path(layout, names[0])
    temporary = archive.with_name(f".{archive.name}.new")
    try:
        _copy_unpacked(arguments.file, temporary)
        temporary.replace(archive)
    finally:
        temporary.unlink(missing_ok=True)
    try:
        _give_to_nodes(layout, archive)
    except ClusterError:
        archive.unlink()
        raise
    print(f"Imported {', '.join(names)}")
    return 0


def _pull(layout: Layout, arguments: argparse.Namespace) -> int:
    from pybernetes.cluster.images import transfer

    if bool(arguments.username) != arguments.password_stdin:
        raise ClusterError("--username and --password-stdin go together")
    password = sys.stdin.readline().rstrip("\r\n") if arguments.password_stdin else ""
    name, archive = transfer.pull(layout, arguments.image, arguments.username, password)
    _give_to_nodes(layout, archive)
    print(f"Pulled {name}")
    return 0


def _export(layout: Layout, arguments: argparse.Namespace) -> int:
    from pybernetes.cluster.images import transfer

    name = _full_name(arguments.image)
    archives = [path for path in layout.images.glob("*.tar") if name in map(_full_name, archive_names(path))]
    transfer.export(archives, name, arguments.file)
    print(f"Wrote {arguments.file} ({arguments.file.stat().st_size / 1e6:.1f} MB)")
    return 0


def _copy_unpacked(source: Path, target: Path) -> None:
    """Copies an archive; one that is compressed as a whole is unpacked, so that parts can be read by themselves."""
    with open(source, "rb") as file:
        head = file.read(6)
    opener: Any = open
    if head[:2] == b"\x1f\x8b":
        opener = gzip.open
    elif head[:3] == b"BZh":
        opener = bz2.open
    elif head == b"\xfd7zXZ\0":
        opener = lzma.open
    try:
        with opener(source, "rb") as read, open(target, "wb") as write:
            shutil.copyfileobj(read, write, 1 << 20)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise ClusterError(f"{source} is damaged: {error}") from error


def _list(layout: Layout, arguments: argparse.Namespace) -> int:
    inits = _running(layout)
    rows = [("IMAGE", "ID", "SIZE", "NODES")]
    if inits:
        rows += asyncio.run(_images(inits))
    else:
        for archive in sorted(layout.images.glob("*.tar")):
            size = f"{archive.stat().st_size / 1e6:.1f} MB"
            rows += [(name, "-", size, "none runs") for name in archive_names(archive)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows))
    return 0


def _remove(layout: Layout, arguments: argparse.Namespace) -> int:
    name = _full_name(arguments.image)
    if name == builtin.PAUSE:
        raise ClusterError(f"{name} is what every pod's sandbox is made of; it stays")
    archives = [path for path in layout.images.glob("*.tar") if name in map(_full_name, archive_names(path))]
    gone = asyncio.run(_remove_from_nodes(_running(layout), name))
    for archive in archives:
        archive.unlink()
    if not gone and not archives:
        raise ClusterError(f"no node has an image {name}")
    print(f"Removed {name}" + (f" from {', '.join(gone)}" if gone else ""))
    return 0


def archive_names(archive: Path) -> list[str]:
    """The names of the images in an archive, OCI's or docker's; ClusterError if there are none."""
    try:
        with tarfile.open(archive, "r:*") as tar:
            names = _names_in(tar)
    except (tarfile.TarError, EOFError, ValueError, AttributeError, TypeError) as error:  # also JSON of another shape
        raise ClusterError(f"{archive} is not an archive of images: {error}") from error
    if not names:
        raise ClusterError(f"{archive} holds no image with a name")
    return names


def _names_in(tar: tarfile.TarFile) -> list[str]:
    names: list[str] = []
    for manifest in _load(tar, "index.json", {}).get("manifests") or ():
        annotations = manifest.get("annotations") or {}
        names += [str(name) for key in (oci.NAME, oci.REFERENCE) if (name := annotations.get(key))][:1]
    if not names:
        images = _load(tar, "manifest.json", [])
        names = [str(name) for image in images for name in image.get("RepoTags") or ()]
    return names


def _load(tar: tarfile.TarFile, name: str, default: Any) -> Any:
    try:
        member = tar.extractfile(name)
    except KeyError:
        return default
    return json.load(member) if member is not None else default


def _give_to_nodes(layout: Layout, archive: Path) -> None:
    from pybernetes.cluster.node import boot

    running = _running(layout)
    imports = [(name, boot.import_archive(init, archive)) for name, init in running.items() if _has_containerd(init)]
    for name, process in imports:
        boot.finish_import(layout, name, archive, process)
    for init in running.values():
        if not _has_containerd(init):
            asyncio.run(_take_in(init, archive_names(archive)[0]))
    if not running:
        print("No node runs: they get it when the cluster starts.")


def _running(layout: Layout) -> dict[str, int]:
    """The init processes of the nodes that run."""
    from pybernetes.cluster.node import inside

    names = [path.parent.name for path in sorted(layout.data.glob("nodes/*/machine.json"))]
    found = {name: inside.init_process(layout, name) for name in names}
    return {name: init for name, init in found.items() if init is not None}


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


async def _images(inits: dict[str, int]) -> list[tuple[str, str, str, str]]:
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.remote import Runtime

    where: dict[tuple[str, str, str], list[str]] = {}
    for node, init in inits.items():
        async with Runtime(_socket(init)) as runtime:
            answer = await runtime.list_images(cri.ListImagesRequest())
        for image in answer.images:
            for name in image.repo_tags or image.repo_digests or ["<none>"]:
                row = (name, image.id.removeprefix("sha256:")[:12], f"{image.size / 1e6:.1f} MB")
                where.setdefault(row, []).append(node)
    return [(*row, ", ".join(nodes)) for row, nodes in sorted(where.items())]


async def _remove_from_nodes(inits: dict[str, int], name: str) -> list[str]:
    from pybernetes.cri import v1 as cri
    from pybernetes.cri.remote import Runtime

    gone = []
    for node, init in inits.items():
        async with Runtime(_socket(init)) as runtime:
            spec = cri.ImageSpec(image=name)
            if (await runtime.image_status(cri.ImageStatusRequest(image=spec))).image.id:
                await runtime.remove_image(cri.RemoveImageRequest(image=spec))
                gone.append(node)
    return gone


def _full_name(name: str) -> str:
    try:
        return oci.full_name(name)
    except ValueError as error:
        raise ClusterError(str(error)) from None
