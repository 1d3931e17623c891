"""`pyb image`: the images of a cluster's nodes.

What is imported or made is kept in the data of the cluster, so that nodes which come later get it too. Names are as in
a pod: `nginx:1.22.1` is `docker.io/library/nginx:1.22.1`. With `imagePullPolicy: Always`, which is the default for
`latest`, the node's own registry is asked first: it has what is kept here (`node/mirror.py`).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pybernetes.cluster import files
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import archives, builtin, nodes, oci, store
from pybernetes.cluster.layout import Layout, locate

PYTHON_IMAGE = "localhost/pybernetes/pyb:latest"


def main(argv: list[str]) -> int:
    """Runs one of the subcommands."""
    arguments = _parse(argv)
    layout = locate(arguments.name, arguments.data_dir)
    record = layout.read_record()
    if record is None and not arguments.adds:
        raise ClusterError(f"there is no cluster {layout.name!r}; {flags.command('up', layout.name)} makes one")
    try:
        layout.claim()
        if record is None:
            layout.prepare()  # images may be there before the cluster's first start
        if arguments.run is _build:  # it takes its time, and keeps others out only when it has something for the nodes
            return int(arguments.run(layout, arguments))
        with layout.lock():
            store.forget_unfinished(layout)
            return int(arguments.run(layout, arguments))
    except OSError as error:
        raise ClusterError(f"{error.filename or layout.images}: {error.strerror or error}") from error


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = flags.Parser(prog=f"{program()} image", description="The images of a cluster's nodes.")
    flags.add(parser)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        flags.add(made, again=True)
        return made

    made = command("build", "Builds an image from a Dockerfile and gives it to all nodes.")
    made.add_argument("context", help="the folder whose files COPY and ADD take")
    made.add_argument(
        "-t", "--tag", action="append", default=[], metavar="NAME:TAG", help="its name; may be given several times"
    )
    made.add_argument("-f", "--file", metavar="FILE", help="the Dockerfile (default: CONTEXT/Dockerfile; -: stdin)")
    made.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="a value for an ARG")
    made.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="a label of the image")
    made.add_argument("--target", default="", metavar="STAGE", help="the stage to build (default: the last)")
    made.add_argument("--no-cache", action="store_true", help="carry out every step anew")
    made.add_argument("--pull", action="store_true", help="ask registries for the images of FROM, though they are here")
    made.set_defaults(run=_build, adds=True)
    made = command("from-package", "Makes an image of an installed Debian package and all it links to.")
    made.add_argument("package")
    made.add_argument(
        "--tag", action="append", default=[], metavar="NAME:TAG", help="instead of PACKAGE:VERSION and PACKAGE:latest"
    )
    made.add_argument(
        "--command",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="WORD",
        help="what a container of it runs: all words that follow, so it comes last",
    )
    made.set_defaults(run=_from_package, adds=True)
    made = command("from-python", "Makes an image of this Python with Pybernetes, for parts of it that run as pods.")
    made.add_argument("--tag", action="append", default=[], metavar="NAME:TAG", help=f"instead of {PYTHON_IMAGE}")
    made.set_defaults(run=_from_python, adds=True)
    made = command("import", "Imports an archive (OCI or docker), or the folder of an OCI layout, into all nodes.")
    made.add_argument("file", type=Path)
    made.add_argument(
        "-t", "--tag", action="append", default=[], metavar="NAME:TAG", help="instead of the names it has; repeatable"
    )
    made.set_defaults(run=_import, adds=True)
    made = command("pull", "Loads an image from its registry and gives it to all nodes.")
    made.add_argument("image")
    made.add_argument("--username", default="", help="instead of what `docker login` left")
    made.add_argument("--password-stdin", action="store_true", help="reads the password")
    made.set_defaults(run=_pull, adds=True)
    made = command("export", "Writes the archive of an image that was pulled, imported or made here.")
    made.add_argument("image")
    made.add_argument("file", type=Path)
    made.set_defaults(run=_export, adds=False)
    made = command("tag", "Gives an image that is kept here one more name, on all nodes too.")
    made.add_argument("image", help="one of its names")
    made.add_argument("new_name", metavar="NAME:TAG", help="the name to add; another image that has it loses it")
    made.set_defaults(run=_tag, adds=False)
    made = command("ls", "Lists the images of the nodes.")
    made.set_defaults(run=_list, adds=False)
    made = command("rm", "Removes an image, with all its names, from all nodes.")
    made.add_argument("image", help="its name, or the id that `ls` shows")
    made.set_defaults(run=_remove, adds=False)
    made = command("prune", "Removes images without a name that no container uses from all nodes.")
    made.set_defaults(run=_prune, adds=False)
    return parser.parse_args(argv)


def _build(layout: Layout, arguments: argparse.Namespace) -> int:
    from pybernetes.cluster.images.dockerfile import command

    names = [archives.full_name(name) for name in arguments.tag]
    if not names:
        raise ClusterError("an image needs a name: -t NAME:TAG")
    made = command.build(layout, arguments, names)
    archive = store.archive_path(layout, names[0])
    try:
        with layout.lock():
            made.replace(archive)
            nodes.give(layout, archive)
    finally:
        made.unlink(missing_ok=True)
    print(f"Built {', '.join(names)} ({archive.stat().st_size / 1e6:.1f} MB)")
    return 0


def _from_package(layout: Layout, arguments: argparse.Namespace) -> int:
    from pybernetes.cluster.images import package

    names = [archives.full_name(name) for name in arguments.tag]
    image, left_out = package.image(arguments.package, names, arguments.command)
    files.make_private_folder(layout.images)
    archive = store.archive_path(layout, image.names[0])
    oci.write(archive, image)
    for path in left_out:
        print(f"Left out, because it is not world-readable: {path}")
    nodes.give(layout, archive)
    print(f"Image {', '.join(image.names)} ({archive.stat().st_size / 1e6:.1f} MB) runs: {' '.join(image.command)}")
    return 0


def _from_python(layout: Layout, arguments: argparse.Namespace) -> int:
    from pybernetes.cluster.images import python

    image = python.image([archives.full_name(name) for name in arguments.tag])
    files.make_private_folder(layout.images)
    archive = store.archive_path(layout, image.names[0])
    oci.write(archive, image)
    nodes.give(layout, archive)
    print(f"Image {', '.join(image.names)} ({archive.stat().st_size / 1e6:.1f} MB) runs: {' '.join(image.entrypoint)}")
    return 0


def _import(layout: Layout, arguments: argparse.Namespace) -> int:
    files.make_private_folder(layout.images)
    temporary = layout.images / f".import.{os.getpid()}"
    try:
        archives.copy(arguments.file, temporary)
        if arguments.tag:
            archives.rename(temporary, [archives.full_name(name) for name in arguments.tag], arguments.file)
        names = archives.check(temporary, arguments.file)
        archives.name_for_containerd(temporary)
        archive = store.archive_path(layout, names[0])
        temporary.replace(archive)
    finally:
        temporary.unlink(missing_ok=True)
    try:
        nodes.give(layout, archive)
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
    nodes.give(layout, archive)
    print(f"Pulled {name}")
    return 0


def _export(layout: Layout, arguments: argparse.Namespace) -> int:
    from pybernetes.cluster.images import transfer

    name = archives.full_name(arguments.image)
    size = transfer.export(archives.holding(layout.images, name), name, arguments.file)
    print(f"Wrote {arguments.file} ({size / 1e6:.1f} MB)", file=sys.stderr)
    return 0


def _tag(layout: Layout, arguments: argparse.Namespace) -> int:
    source, name = archives.full_name(arguments.image), archives.full_name(arguments.new_name)
    kept = archives.holding(layout.images, source)
    if not kept:
        raise ClusterError(
            f"no image {source} is kept here; {flags.command('image ls', layout.name)} shows what nodes have"
        )
    archive = kept[0]
    for other in archives.holding(layout.images, name):
        if other != archive:
            rest = [each for each in archives.names(other) if each != name]
            archives.rename(other, rest, other) if rest else other.unlink()
    have = archives.names(archive)
    if name not in have:
        archives.rename(archive, [*have, name], archive)
    nodes.give(layout, archive, name)
    print(f"Tagged {source} as {name}")
    return 0


def _prune(layout: Layout, arguments: argparse.Namespace) -> int:
    removed = nodes.prune(nodes.running(layout))
    for node, images in removed.items():
        for id, size in images:
            print(f"Removed {id.removeprefix('sha256:')[:12]} ({size / 1e6:.1f} MB) from {node}")
    total = sum(size for images in removed.values() for _, size in images)
    print(f"{sum(map(len, removed.values()))} images, {total / 1e6:.1f} MB")
    return 0


def _list(layout: Layout, arguments: argparse.Namespace) -> int:
    running = nodes.running(layout)
    rows = [("IMAGE", "ID", "SIZE", "NODES")]
    if running:
        rows += nodes.table(running)
    else:
        for archive in sorted(layout.images.glob("*.tar")):
            size = f"{archive.stat().st_size / 1e6:.1f} MB"
            try:
                rows += [(name, "-", size, "none runs") for name in archives.names(archive)]
            except ClusterError:
                rows.append((f"<{archive.name} cannot be read>", "-", size, "none runs"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows))
    return 0


def _remove(layout: Layout, arguments: argparse.Namespace) -> int:
    running = nodes.running(layout)
    name = arguments.image if running and nodes.as_id(arguments.image) else archives.full_name(arguments.image)
    if name == builtin.PAUSE or any(row[0] == builtin.PAUSE for row in _with_id(running, name)):
        raise ClusterError(f"{builtin.PAUSE} is what every pod's sandbox is made of; it stays")
    kept = archives.holding(layout.images, name)
    gone = nodes.remove(running, name)
    if nodes.as_id(name):  # by its name an image goes only under that name: another archive may have the same one
        kept += [path for names in gone.values() for each in names for path in archives.holding(layout.images, each)]
    for archive in kept:
        archive.unlink(missing_ok=True)
    if not gone and not kept:
        raise ClusterError(f"no node has an image {name}")
    print(f"Removed {name}" + (f" from {', '.join(gone)}" if gone else ""))
    return 0


def _with_id(running: dict[str, nodes.Node], name: str) -> list[tuple[str, str, str, str]]:
    """The images that an id stands for; it must stand for one."""
    short = nodes.as_id(name)
    rows = [row for row in nodes.table(running) if row[1].startswith(short[:12])] if short else []
    if len({row[1] for row in rows}) > 1:
        raise ClusterError(f"{name} is the beginning of several ids")
    return rows
