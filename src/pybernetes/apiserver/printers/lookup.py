"""Finds the printer of a resource, and the way from stored bytes to what it prints.

Resources with several versions are printed as the stored one, so that both versions look the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final, NamedTuple

import msgspec

from pybernetes.api import scheme
from pybernetes.api.resources import Resource

from .default import DEFAULT, Named
from .printer import Printer

# Packages of groups that have printers; the others (reviews, CRDs) get the default table.
_PACKAGES: Final = frozenset(
    (
        "admissionregistration",
        "apiregistration",
        "apps",
        "autoscaling",
        "batch",
        "certificates",
        "coordination",
        "core",
        "discovery",
        "flowcontrol",
        "metrics",
        "networking",
        "node",
        "policy",
        "rbac",
        "resource",
        "scheduling",
        "storage",
    )
)


class Found(NamedTuple):
    """A printer and what feeds it."""

    printer: Printer
    decode: Callable[[bytes], Any]
    converted: bool = False
    """The object that is printed, and whose metadata is shown, is not the one of the bytes."""


@cache
def find(resource: Resource) -> Found:
    """How a resource is printed."""
    stored = scheme.storage_resource(resource)
    printer = printer_of(stored.package, stored.kind)
    if printer.shape is not None:
        return Found(printer, msgspec.json.Decoder(printer.shape).decode)
    decode = scheme.stored_decoder(resource)
    if stored is resource:
        return Found(printer, decode)
    return Found(printer, lambda raw: scheme.convert(decode(raw), resource, stored), converted=True)


@lru_cache(64)  # the kind is the objects' own
def find_subresource(kind: str) -> Found:
    """How the kind of a subresource is printed, such as a Scale."""
    printer = printer_of("autoscaling", kind)
    return Found(printer, msgspec.json.Decoder(printer.shape or Named).decode)


def printer_of(package: str, kind: str) -> Printer:
    """The printer of a kind; the default one if it has none of its own."""
    if package not in _PACKAGES:
        return DEFAULT
    printers: dict[str, Printer] = import_module(f"{__package__}.{package}").PRINTERS
    return printers.get(kind, DEFAULT)
