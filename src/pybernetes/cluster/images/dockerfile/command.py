"""`pyb image build`: its flags, the files it reads, what it shows; the result is an archive."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pybernetes.cluster import files
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import oci
from pybernetes.cluster.images.dockerfile import parsing
from pybernetes.cluster.images.dockerfile.building import Builder, Request
from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.layout import Layout

IGNORE = ".dockerignore"
LARGEST_IGNORE = 1 << 20


def build(layout: Layout, arguments: argparse.Namespace, names: Sequence[str]) -> Path:
    """Builds the image; the archive, in the folder of archives, but under a name that no node looks at."""
    if os.geteuid() != 0:
        raise ClusterError("image build needs root: it mounts file systems and keeps the owners of files")
    request = _request(arguments, names)
    files.make_private_folder(layout.images)
    made = layout.images / f".build.{os.getpid()}"
    output = _Output()
    with Kept(layout.data / "build") as kept:
        try:
            built = Builder(layout, kept, request, output.say, output.show).build()
        finally:
            output.end()
        try:
            with open(made, "wb") as out:
                oci.write_layout(out, names, built.document, built.layers)
        except ValueError as error:
            made.unlink(missing_ok=True)
            raise ClusterError(str(error)) from None
        except BaseException:
            made.unlink(missing_ok=True)
            raise
    return made


def _request(arguments: argparse.Namespace, names: Sequence[str]) -> Request:
    if arguments.context == "-" or "://" in arguments.context:
        raise ClusterError(f"the context {arguments.context!r} is not supported: give a folder")
    context = Path(arguments.context)
    if not context.is_dir():
        raise ClusterError(f"the context {context} is no folder")
    if arguments.file == "-":
        shown, content = "stdin", sys.stdin.buffer.read(parsing.LARGEST + 1)
        own = Path()
    else:
        path = Path(arguments.file) if arguments.file else context / "Dockerfile"
        shown, content = str(path), _read(path, parsing.LARGEST + 1)
        own = path.with_name(f"{path.name}{IGNORE}")
    ignored: list[str] = []
    for candidate in (own, context / IGNORE):
        if candidate.is_file():
            text = _read(candidate, LARGEST_IGNORE)
            ignored = text.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")
            break
    return Request(
        context,
        shown,
        content,
        ignored,
        names,
        _pairs(arguments.build_arg, "--build-arg", from_environment=True),
        _pairs(arguments.label, "--label", from_environment=False),
        arguments.target,
        cache=not arguments.no_cache,
        pull=arguments.pull,
    )


def _read(path: Path, most: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}") from None


def _pairs(given: Sequence[str], flag: str, *, from_environment: bool) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name:
            raise ClusterError(f"{flag} {each!r} is not NAME=VALUE")
        if any("\ud800" <= character <= "\udfff" for character in each):
            raise ClusterError(f"{flag} {name!r}: not UTF-8, and images have no other text")
        if equals or not from_environment:
            found[name] = value
        elif name in os.environ:
            found[name] = os.environ[name]  # docker takes it from there, too
    return found


class _Output:
    """Lines of the build, and below them what its commands write."""

    def __init__(self) -> None:
        self._fresh = True

    def say(self, line: str) -> None:
        """A line of the build's own."""
        self.end()
        print(line, flush=True)

    def show(self, data: bytes) -> None:
        """Print a command's output without control characters."""
        for part in data.decode(errors="replace").replace("\r\n", "\n").splitlines(keepends=True):
            text = "".join(each for each in part if each.isprintable() or each in "\n\t")
            sys.stdout.write(f"    {text}" if self._fresh else text)
            self._fresh = part.endswith(("\n", "\r"))
            if part.endswith("\r"):
                sys.stdout.write("\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Ends a line that a command began."""
        if not self._fresh:
            sys.stdout.write("\n")
            self._fresh = True
