"""A place to build images in: a cluster's data without a cluster, a context, and a look at what came out."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cluster.commands import image
from pybernetes.cluster.images import builtin, store
from pybernetes.cluster.layout import Layout
from pybernetes.cri.embedded.images.archive import Archive

if os.geteuid() != 0:
    pytest.skip("needs root: overlayfs and owners", allow_module_level=True)
if builtin.busybox_program() is None:
    pytest.skip("not installed: busybox-static", allow_module_level=True)


@dataclass
class Result:
    """An image that was built: its configuration, and the entries of its layers, from the lowest."""

    names: tuple[str, ...]
    document: dict[str, Any]
    layers: list[dict[str, tarfile.TarInfo]]
    contents: dict[str, bytes]
    said: str
    archive: Path

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.document["config"])


@dataclass
class Bench:
    """`build` takes a Dockerfile's text and the files of its context."""

    data: Path
    context: Path
    capture: Callable[[], Any]
    count: int = 0
    flags: list[str] = field(default_factory=list)

    def put(self, path: str, content: str = "", mode: int = 0o644) -> Path:
        target = self.context / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        target.chmod(mode)
        os.utime(target, (1_000_000_000, 1_000_000_000))
        return target

    def run(self, text: str, *flags: str) -> str:
        (self.context / "Dockerfile").write_text(text)
        self.capture()
        image.main(["build", "--data-dir", str(self.data), "-t", "made:1", *flags, str(self.context)])
        return str(self.capture().out)

    def build(self, text: str, *flags: str) -> Result:
        said = self.run(text, *flags)
        path = store.archive_path(Layout("x", self.data), "made:1")
        archive = Archive(path)
        try:
            [found] = archive.images()
            layers, contents = [], {}
            for member in found.layers:
                with archive.layer(member) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                    entries = {}
                    for each in tar:
                        entries[each.name] = each
                        if each.isreg():
                            contents[each.name] = tar.extractfile(each).read()
                    layers.append(entries)
        finally:
            archive.close()
        return Result(found.names, json.loads(found.config), layers, contents, said, path)
