"""The kinds of authentication/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..types import Always, Int64, ListType, Required, Time


class SelfSubjectReview(Kind):
    """Who am I?"""

    status: Annotated[SelfSubjectReviewStatus | None, Always({})] = None


class SelfSubjectReviewStatus(Struct):
    user_info: Annotated[UserInfo | None, Always({})] = None


class UserInfo(Struct):
    username: str | None = None
    uid: str | None = None
    groups: Annotated[list[str] | None, ListType("atomic")] = None
    extra: dict[str, list[str]] | None = None


class TokenRequest(Kind):
    """Asks for a token of a service account."""

    spec: Annotated[TokenRequestSpec | None, Always({})] = None
    status: Annotated[TokenRequestStatus | None, Always({})] = None


class TokenRequestSpec(Struct):
    audiences: Annotated[list[str] | None, Always(None), ListType("atomic")] = None
    expiration_seconds: Annotated[Int64 | None, Always(None)] = None
    bound_object_ref: Annotated[BoundObjectReference | None, Always(None)] = None


class BoundObjectReference(Struct):
    kind: str | None = None
    api_version: str | None = None
    name: str | None = None
    uid: str | None = None


class TokenRequestStatus(Struct):
    token: Annotated[str | None, Always("")] = None
    expiration_timestamp: Annotated[Time | None, Always(None)] = None


class TokenReview(Kind):
    """Whose token is this?"""

    spec: Annotated[TokenReviewSpec | None, Required, Always({})] = None
    status: Annotated[TokenReviewStatus | None, Always({})] = None


class TokenReviewSpec(Struct):
    token: Annotated[str | None, Required] = None
    audiences: Annotated[list[str] | None, ListType("atomic")] = None


class TokenReviewStatus(Struct):
    authenticated: bool | None = None
    user: Annotated[UserInfo | None, Always({})] = None
    audiences: Annotated[list[str] | None, ListType("atomic")] = None
    error: str | None = None
