"""The node's facts that containers and volumes need. One object, kept up to date by the kubelet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pybernetes.api.quantity import Quantity


@dataclass(slots=True)
class NodeFacts:
    """The node, as far as pods see it."""

    name: str
    ips: Sequence[str] = ()
    """The node's addresses, the one of the preferred family first (`status.hostIPs`)."""
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
