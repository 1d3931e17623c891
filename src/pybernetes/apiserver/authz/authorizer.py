"""The interface of what decides whether somebody may do something, and the two simplest answers."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from ..authn.user import User
from ..requestinfo import RequestInfo


class Decision(Enum):
    """What an authorizer says; NO_OPINION leaves it to the next."""

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Authorizer(Protocol):
    """One authority."""

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        """The decision and its reason."""
        ...


class AlwaysAllow:
    """Everybody who has been identified may do everything."""

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        return Decision.ALLOW, ""


class AlwaysDeny:
    """Nobody may do anything."""

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        return Decision.NO_OPINION, "Everything is forbidden."
