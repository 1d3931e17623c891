"""Dynamic resource allocation: device classes, claims and their templates, slices."""

from __future__ import annotations

from typing import Final

from pybernetes.api.resource.v1 import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSliceSpec,
)

from .printer import AGE, NAME, Cells, Printer, age, deleting, name, text


def _named(obj: DeviceClass | ResourceClaimTemplate, now: float) -> Cells:
    return [name(obj), age(obj, now)]


def _claim(claim: ResourceClaim, now: float) -> Cells:
    return [name(claim), _state(claim), age(claim, now)]


def _state(claim: ResourceClaim) -> str:
    status = claim.status or ResourceClaimStatus()
    states = ["deleted"] if deleting(claim) else []
    if status.allocation is not None:
        states += ["allocated", "reserved"] if status.reserved_for else ["allocated"]
    return ",".join(states) or "pending"


def _slice(slice: ResourceSlice, now: float) -> Cells:
    spec = slice.spec or ResourceSliceSpec()
    return [
        name(slice),
        spec.node_name or "",
        spec.driver or "",
        (spec.pool.name if spec.pool else None) or "",
        age(slice, now),
    ]


_NAMED: Final = Printer((NAME, AGE), _named)

PRINTERS: Final[dict[str, Printer]] = {
    "DeviceClass": _NAMED,
    "ResourceClaim": Printer((NAME, text("State", "What became of the claim"), AGE), _claim),
    "ResourceClaimTemplate": _NAMED,
    "ResourceSlice": Printer(
        (
            NAME,
            text("Node", "Where the devices are"),
            text("Driver", "Who offers them"),
            text("Pool", "Which pool they belong to"),
            AGE,
        ),
        _slice,
    ),
}
