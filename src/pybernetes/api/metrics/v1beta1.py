"""The kinds of metrics.k8s.io/v1beta1."""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..types import Always, Duration, ListType, Quantity, Required, Time


class NodeMetrics(Kind):
    """The usage of a node, measured over the time from `timestamp - window` to `timestamp`."""

    timestamp: Annotated[Time | None, Required, Always(None)] = None
    window: Annotated[Duration | None, Required, Always("0s")] = None
    usage: Annotated[dict[str, Quantity] | None, Required, Always({})] = None


class PodMetrics(Kind):
    """The usage of a pod's containers, measured over the time from `timestamp - window` to `timestamp`."""

    timestamp: Annotated[Time | None, Required, Always(None)] = None
    window: Annotated[Duration | None, Required, Always("0s")] = None
    containers: Annotated[list[ContainerMetrics] | None, Required, Always([]), ListType("atomic")] = None


class ContainerMetrics(Struct):
    """The usage of a container."""

    name: Annotated[str | None, Required, Always("")] = None
    usage: Annotated[dict[str, Quantity] | None, Required, Always({})] = None
