"""The managed fields of a review, which is answered and not stored."""

from __future__ import annotations

from typing import Any

from pybernetes.api.managedfields import record_update
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request

from ..pipeline.options import WriteOptions, manager_of


def track_review(resource: Resource, review: Any, request: Request, options: WriteOptions, now: str) -> None:
    """Write into an object that is never stored who owns its fields; what servers set is not the client's."""
    meta = review.metadata
    meta.uid = meta.creation_timestamp = meta.self_link = None
    meta.deletion_timestamp = meta.deletion_grace_period_seconds = None
    meta.managed_fields = record_update(
        review, None, manager=manager_of(request, options), api_version=resource.api_version, now=now
    )
