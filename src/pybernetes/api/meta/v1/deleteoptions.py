"""meta/v1: deleteoptions.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Int64, ListType


class DeleteOptions(Struct):
    """How to delete."""

    kind: str | None = None
    api_version: str | None = None
    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: Annotated[list[str] | None, ListType("atomic")] = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


class Preconditions(Struct):
    uid: str | None = None
    resource_version: str | None = None
