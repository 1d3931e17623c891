"""meta/v1: what a request asks for besides its object, as query parameters.

By hand: the published schemas list them only as parameters of paths.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Int64, ListType


class GetOptions(Struct):
    kind: str | None = None
    api_version: str | None = None
    resource_version: str | None = None


class ListOptions(Struct):
    kind: str | None = None
    api_version: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    watch: bool | None = None
    allow_watch_bookmarks: bool | None = None
    resource_version: str | None = None
    resource_version_match: str | None = None
    timeout_seconds: Int64 | None = None
    limit: Int64 | None = None
    continue_: str | None = None
    send_initial_events: bool | None = None
    shard_selector: str | None = None


class CreateOptions(Struct):
    kind: str | None = None
    api_version: str | None = None
    dry_run: Annotated[list[str] | None, ListType("atomic")] = None
    field_manager: str | None = None
    field_validation: str | None = None


class UpdateOptions(Struct):
    kind: str | None = None
    api_version: str | None = None
    dry_run: Annotated[list[str] | None, ListType("atomic")] = None
    field_manager: str | None = None
    field_validation: str | None = None


class PatchOptions(Struct):
    kind: str | None = None
    api_version: str | None = None
    dry_run: Annotated[list[str] | None, ListType("atomic")] = None
    force: bool | None = None
    field_manager: str | None = None
    field_validation: str | None = None
