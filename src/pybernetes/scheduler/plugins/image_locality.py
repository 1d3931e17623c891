"""Prefers nodes that already have a pod's images, more so the larger they are and the more nodes have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..framework import (
    MAX_SCORE,
    SKIP,
    CycleState,
    EventWithHint,
    PodInfo,
    PreScorePlugin,
    RowArray,
    Rows,
    ScorePlugin,
    Scores,
    Status,
)

MB = 1024 * 1024
MIN_THRESHOLD = 23 * MB
MAX_CONTAINER_THRESHOLD = 1000 * MB


class ImageLocality(PreScorePlugin, ScorePlugin):
    """Images that need not be pulled."""

    name = "ImageLocality"

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        known = self.handle.snapshot.image_nodes
        return None if known and any(name in known for name in _images(pod)) else SKIP  # nowhere: 0 everywhere

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        snapshot = self.handle.snapshot
        scores = np.zeros(snapshot.count(rows), dtype=np.int64)
        names = [name for name in _images(pod) if name in snapshot.image_nodes]
        if not names:
            return scores
        highest = MAX_CONTAINER_THRESHOLD * (len(pod.spec.containers or ()) + len(pod.spec.init_containers or ()))
        worth = {
            name: int(snapshot.image_sizes[name] * (snapshot.image_nodes[name] / snapshot.num_nodes)) for name in names
        }
        for index, row in enumerate(snapshot.row_numbers(rows).tolist()):
            if not snapshot.alive[row]:
                continue
            images = snapshot.info(row).images
            total = sum(worth[name] for name in names if name in images)
            if total > MIN_THRESHOLD:
                scores[index] = MAX_SCORE * (min(total, highest) - MIN_THRESHOLD) // (highest - MIN_THRESHOLD)
        return scores

    def events_to_register(self) -> Sequence[EventWithHint]:
        return ()


def _images(pod: PodInfo) -> list[str]:
    spec = pod.spec
    found = [each.image or "" for each in (*(spec.init_containers or ()), *(spec.containers or ()))]
    found += [volume.image.reference or "" for volume in spec.volumes or () if volume.image]
    return [normalized(name) for name in found]


def normalized(name: str) -> str:
    """With the tag that is meant when there is none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
