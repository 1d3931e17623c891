"""The kinds of node/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..core.v1.affinity import Toleration
from ..types import Always, ListType, MapType, Quantity, Required


class RuntimeClass(Kind):
    """A way to run containers that a pod can ask for."""

    handler: Annotated[str | None, Required, Always("")] = None
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None


class Overhead(Struct):
    pod_fixed: dict[str, Quantity] | None = None


class Scheduling(Struct):
    node_selector: Annotated[dict[str, str] | None, MapType("atomic")] = None
    tolerations: Annotated[list[Toleration] | None, ListType("atomic")] = None
