"""Manifests and indexes that came from strangers: what an image consists of, and which of several is this machine's."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .archive import ARCHITECTURES, INDEXES

LAYERS = {
    "application/vnd.oci.image.layer.v1.tar": "",
    "application/vnd.oci.image.layer.v1.tar+gzip": "gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd": "zstd",
    "application/vnd.docker.image.rootfs.diff.tar": "",
    "application/vnd.docker.image.rootfs.diff.tar.gzip": "gzip",
}
"""The media types of layers, and their compression."""
CONFIGS = ("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")
MOST_LAYERS = 127  # as docker: overlayfs takes no more than a page of options
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_VARIANTS = {"armv7l": ("v7", "v6", "v5"), "armv6l": ("v6", "v5"), "aarch64": ("v8",), "x86_64": ("v1",)}


class BadManifest(ValueError):
    """A document that is not what an image needs."""


class NoMatch(BadManifest):
    """An index without an image for this machine."""


@dataclass(frozen=True)
class Descriptor:
    """A blob: what it is, its digest and its size."""

    media_type: str
    digest: str
    size: int


@dataclass(frozen=True)
class ImageManifest:
    """The parts of an image; layers from the lowest."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


def read(body: bytes, media_type: str) -> ImageManifest | list[Mapping[str, Any]]:
    """A manifest, or the entries of an index."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadManifest(f"a manifest that is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadManifest("a manifest that is not an object")
    if content.get("schemaVersion") != 2:
        raise BadManifest(f"manifest schema {content.get('schemaVersion')} is not supported: push the image anew")
    said = content.get("mediaType") or media_type
    if "manifests" in content and "layers" in content:
        raise BadManifest("a document that is both an index and a manifest")  # one digest, two meanings
    if said in INDEXES or "manifests" in content:
        entries = content.get("manifests")
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise BadManifest("an index without manifests")
        return entries
    layers = content.get("layers")
    if not isinstance(layers, list) or len(layers) > MOST_LAYERS:
        raise BadManifest(f"an image has a list of at most {MOST_LAYERS} layers")
    config = descriptor(content.get("config"))
    if config.media_type not in CONFIGS:
        raise BadManifest(f"not an image that can run: its configuration is {config.media_type!r}")
    return ImageManifest(config, tuple(_layer(each) for each in layers))


def choose(entries: list[Mapping[str, Any]], machine: str = "") -> Descriptor:
    """The entry of an index that fits this machine best: its architecture, and the newest variant that it can run."""
    machine = machine or platform.machine()
    here = ARCHITECTURES.get(machine, machine)
    order = [*_VARIANTS.get(machine, ()), ""]
    best: tuple[int, Descriptor] | None = None
    for entry in entries:
        wanted = entry.get("platform")
        if not isinstance(wanted, dict) or wanted.get("os") != "linux" or wanted.get("architecture") != here:
            continue
        variant = wanted.get("variant") or ""
        if variant in order and (best is None or order.index(variant) < best[0]):
            best = (order.index(variant), descriptor(entry))
    if best is None:
        raise NoMatch(f"no match for platform linux/{here} in manifest")
    return best[1]


def descriptor(content: Any) -> Descriptor:
    """One that was checked: a digest is a digest, and a size is one."""
    if not isinstance(content, dict):
        raise BadManifest("a descriptor is missing")
    digest, size = content.get("digest"), content.get("size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise BadManifest(f"{digest!r} is no sha256 digest")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise BadManifest(f"{digest} has no size")
    return Descriptor(str(content.get("mediaType") or ""), digest, size)


def _layer(content: Any) -> Descriptor:
    layer = descriptor(content)
    if layer.media_type not in LAYERS:
        raise BadManifest(
            f"layer {layer.digest} is {layer.media_type!r}, which is not supported: use tar+gzip or tar+zstd"
        )
    return layer
