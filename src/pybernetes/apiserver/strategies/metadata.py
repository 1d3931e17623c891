"""Metadata that an update of a status does not touch."""

from __future__ import annotations

from typing import Any


def keep_metadata(new: Any, old: Any, *, deletion: bool = True) -> None:
    """Labels, annotations, finalizers and owners stay as they are: for kinds whose status is all that may change.

    So does the time of a `deletion`, with most of them, instead of being refused.
    """
    meta, before = new.metadata, old.metadata
    if deletion:
        meta.deletion_timestamp = before.deletion_timestamp
    meta.labels = before.labels
    meta.annotations = before.annotations
    meta.finalizers = before.finalizers
    meta.owner_references = before.owner_references
