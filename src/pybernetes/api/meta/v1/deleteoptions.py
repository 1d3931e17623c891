"""meta/v1: deleteoptions.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Int64, ListType, Pointer


class DeleteOptions(Struct):
    """How to delete."""

    kind: str | None = None
    api_version: str | None = None
    grace_period_seconds: Annotated[Int64 | None, Pointer] = None
    preconditions: Preconditions | None = None
    orphan_dependents: Annotated[bool | None, Pointer] = None
    propagation_policy: Annotated[str | None, Pointer] = None
    dry_run: Annotated[list[str] | None, ListType("atomic")] = None
    ignore_store_read_error_with_cluster_breaking_potential: Annotated[bool | None, Pointer] = None


class Preconditions(Struct):
    uid: Annotated[str | None, Pointer] = None
    resource_version: Annotated[str | None, Pointer] = None
