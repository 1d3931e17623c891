"""What is filled in for a Lease: an empty spec, which upstream always writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..omitempty import drop
from .v1 import Lease, LeaseSpec


def default_lease(lease: Lease) -> None:
    """A spec."""
    drop(lease)
    if lease.spec is None:
        lease.spec = LeaseSpec()


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Lease": default_lease}
