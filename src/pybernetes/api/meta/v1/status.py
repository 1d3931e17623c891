"""meta/v1: status.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Always, Int32, ListType
from .listmeta import ListMeta


class Status(Struct):
    """The answer when there is no object to answer with, mostly an error."""

    kind: str | None = None
    api_version: str | None = None
    metadata: Annotated[ListMeta | None, Always({})] = None
    status: str | None = None
    message: str | None = None
    reason: str | None = None
    details: StatusDetails | None = None
    code: Int32 | None = None


class StatusDetails(Struct):
    name: str | None = None
    group: str | None = None
    kind: str | None = None
    uid: str | None = None
    causes: Annotated[list[StatusCause] | None, ListType("atomic")] = None
    retry_after_seconds: Int32 | None = None


class StatusCause(Struct):
    reason: str | None = None
    message: str | None = None
    field: str | None = None
