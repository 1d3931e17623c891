"""An instruction that is carried out: what it needs, and the layer that it adds to its stage.

A step that writes files is looked up by a key first: what was before it, what it says, and the content of what it
copies. The same key means the same layer, which is taken from the last time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybernetes.cluster.images.dockerfile import sources
from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.images.dockerfile.parsing import Instruction
from pybernetes.cluster.images.dockerfile.stage import Layer, Stage
from pybernetes.cri.embedded.images.manifests import MOST_LAYERS


@dataclass(frozen=True)
class Step:
    """An instruction that is carried out, and what it needs for that."""

    stage: Stage
    instruction: Instruction
    title: str
    kept: Kept
    context: sources.Tree
    latest: int | None
    cache: bool
    proxies: dict[str, str]
    layers: Callable[[str], list[Layer]]
    """Those of an earlier stage, or of an image."""
    tell: Callable[[str], object]
    show: Callable[[bytes], object]

    def say(self, more: str) -> None:
        """Shows the instruction."""
        self.tell(f"{self.title} {self.instruction.original}{more}")

    def tree(self, name: str, stack: contextlib.ExitStack) -> sources.Tree:
        """Where it copies from: the context, an earlier stage, or an image."""
        if not name:
            return self.context
        return sources.Tree(stack.enter_context(self.kept.merged(self.layers(name))))

    def made(self, parts: Sequence[object], make: Callable[[Path, Path], None]) -> None:
        """Adds its layer to the stage: the one that is kept of the same `parts`, or what `make` writes now."""
        stage = self.stage
        key = key_of(stage.key, stage.config, self.latest, *parts)
        found = self.kept.find(key) if self.cache else False
        if found is not False:
            self.say("  (cached)")
        else:
            self.say("")
            if len(stage.layers) >= MOST_LAYERS:
                raise ValueError(f"an image has at most {MOST_LAYERS} layers")
            began = time.perf_counter()
            with self.kept.step() as (upper, work):
                make(upper, work)
                found = self.kept.take(key, upper, stage.layers, self.latest)
            size = f", {found.blob.size / 1e6:.1f} MB" if isinstance(found, Layer) else ""
            self.tell(f"    {time.perf_counter() - began:.2f} s{size}")
        stage.key = key
        if isinstance(found, Layer):
            stage.layers.append(found)
        stage.tell(self.instruction.original, empty=not isinstance(found, Layer))


def key_of(*parts: object) -> str:
    """A name for what these parts say."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
