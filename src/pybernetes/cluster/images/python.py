"""Makes an image of this Python with Pybernetes, so that parts of it run as pods without a registry.

In it are the interpreter with its standard library, the packages that Pybernetes needs, as they are installed here,
and the libraries that any of them links to.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pybernetes
from pybernetes.cluster.images import builtin, oci
from pybernetes.cluster.images.collected import Collected, base, library_cache
from pybernetes.cluster.images.package import AUTHORITIES

NAME = "localhost/pybernetes/pyb:latest"
PLACE = "/opt/pybernetes"
NOT_NEEDED = re.compile(r"/(test|tests|idlelib|tkinter|turtledemo|ensurepip|lib2to3|site-packages)(/|$)|config-\d|\.a$")
DISTRIBUTION = "pybernetes"
EXTRAS = ("objectfs",)
# Only for people at a terminal, tests, and the scheduler's columns.
LEFT_OUT = ("lightkube-models", "setuptools", "pip")


def image(names: Sequence[str] = ()) -> oci.Image:
    """The image; its containers run `python -m pybernetes ARGUMENTS`."""
    collected = Collected()
    interpreter = os.path.realpath(sys.executable)
    collected.add(interpreter)
    library = sysconfig.get_config_var("INSTSONAME")
    folder = sysconfig.get_config_var("LIBDIR")
    if library and folder and os.path.exists(f"{folder}/{library}"):
        collected.add(f"{folder}/{library}")
    _add_tree(collected, sysconfig.get_path("stdlib"))
    packages, code = Path(sysconfig.get_path("platlib")), Path(pybernetes.__file__).parent
    for each in _distributions():
        for file in metadata.distribution(each).files or ():
            path = str(packages / file)
            if not NOT_NEEDED.search(f"/{file}") and os.path.isfile(path):
                collected.add(os.path.realpath(path))
    _add_tree(collected, str(code))
    collected.add_libraries(library_cache())
    collected.add(AUTHORITIES)
    moved = {str(packages.resolve()): f"{PLACE}/packages", str(code.resolve()): f"{PLACE}/packages/pybernetes"}
    entries = [*base(), oci.folder("usr/lib/ssl"), oci.link("usr/lib/ssl/cert.pem", AUTHORITIES)]
    entries += _parents([PLACE, f"{PLACE}/packages", os.path.dirname(interpreter), sysconfig.get_path("stdlib")])
    for entry in collected.entries():
        for here, there in moved.items():
            if entry.path.startswith(f"{here}/"):
                entry = replace(entry, path=there + entry.path[len(here) :])
                break
        entries.append(entry)
    busybox = builtin.busybox_program()
    if busybox is not None:
        entries += builtin.busybox_entries(busybox)
    return oci.Image(
        names=list(names) or [NAME],
        entries=entries,
        entrypoint=[interpreter, "-P", "-m", "pybernetes"],
        environment=(oci.PATH, f"PYTHONPATH={PLACE}/packages", f"PYTHONHOME={sys.base_prefix}", "PYTHONUNBUFFERED=1"),
        labels={"org.opencontainers.image.title": DISTRIBUTION},
    )


def _add_tree(collected: Collected, top: str) -> None:
    for folder, folders, names in os.walk(os.path.realpath(top)):
        folders[:] = [each for each in folders if not NOT_NEEDED.search(f"/{each}/")]
        collected.add(folder)
        for name in names:
            if not NOT_NEEDED.search(f"/{name}"):
                collected.add(os.path.join(folder, name))


def _distributions() -> list[str]:
    """The installed packages that a run needs, with those they need."""
    found: dict[str, None] = {}
    todo = list(_requirements(DISTRIBUTION, EXTRAS))
    while todo:
        name, extras = todo.pop()
        if name in found or name in LEFT_OUT:
            continue
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another Python or system, or an extra that is not installed
        found[name] = None
        todo += _requirements(name, extras)
    return list(found)


def _requirements(name: str, extras: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    for text in metadata.distribution(name).requires or ():
        wanted, _, marker = text.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
        if extra is not None and extra[1] not in extras:
            continue
        match = re.match(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?", wanted)
        if match is not None:
            yield match[1].lower().replace("_", "-"), [each.strip() for each in (match[2] or "").split(",")]


def _parents(paths: Sequence[str]) -> list[oci.Entry]:
    """Folders down to each path, in order."""
    found: dict[str, oci.Entry] = {}
    for path in paths:
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            each = "/".join(parts[:count])
            if not os.path.islink(f"/{each}"):
                found.setdefault(each, oci.folder(each))
    return list(found.values())
