"""Leases."""

from __future__ import annotations

from typing import Final

from pybernetes.api.coordination.v1 import Lease

from .printer import AGE, NAME, Cells, Printer, age, name, text


def _lease(lease: Lease, now: float) -> Cells:
    return [name(lease), (lease.spec.holder_identity if lease.spec else None) or "", age(lease, now)]


PRINTERS: Final[dict[str, Printer]] = {"Lease": Printer((NAME, text("Holder", "Who holds it"), AGE), _lease)}
