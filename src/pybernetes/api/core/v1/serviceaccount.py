"""core/v1: serviceaccount.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Kind
from ...types import ListType, Patch, Pointer
from .reference import LocalObjectReference, ObjectReference


class ServiceAccount(Kind):
    """Who a pod is to the API."""

    secrets: Annotated[list[ObjectReference] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None
    image_pull_secrets: Annotated[list[LocalObjectReference] | None, ListType("atomic")] = None
    automount_service_account_token: Annotated[bool | None, Pointer] = None
