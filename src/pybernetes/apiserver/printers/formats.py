"""Cells that several kinds have in common: containers of a template, labels, selectors, lists cut short, quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybernetes.api import labels, quantity
from pybernetes.api.core.v1 import PodTemplateSpec
from pybernetes.api.meta.v1 import LabelSelector

from .printer import NONE


def containers(template: PodTemplateSpec | None) -> tuple[str, str]:
    """The names and the images of a template's containers."""
    found = (template and template.spec and template.spec.containers) or ()
    return ",".join([each.name or "" for each in found]), ",".join([each.image or "" for each in found])


def label_set(values: Mapping[str, str] | None) -> str:
    """Labels, sorted by key."""
    return ",".join([f"{key}={value}" for key, value in sorted((values or {}).items())]) or NONE


def label_selector(selector: LabelSelector | None) -> str:
    """A selector in its text form."""
    try:
        return str(labels.from_label_selector(selector)) or NONE
    except labels.SelectorError:
        return "<error>"


def cut(shown: Sequence[str], total: int, limit: int, *, separator: str = ",") -> str:
    """The first `limit` of a list, and how many of the `total` are left out."""
    joined = separator.join(shown[:limit])
    return f"{joined} + {total - limit} more..." if len(shown) > limit else joined


def amount(value: object) -> str:
    """A quantity in its canonical form; absent is zero."""
    return "0" if value is None else quantity.canonicalize(value)
