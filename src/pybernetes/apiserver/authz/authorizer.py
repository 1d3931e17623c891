"""The interface of authorizers, and the two simplest ones.

An authorizer answers at once where it can: every request asks, and to start a coroutine costs more than most of the
answers do. Those that ask a webhook are awaited, and only they may fail to find out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from enum import Enum
from typing import Protocol

from pybernetes.api.authorization.v1 import NonResourceRule, ResourceRule, SubjectRulesReviewStatus

from ..requestinfo import RequestInfo
from ..user import User


class Decision(Enum):
    """The decision of an authorizer; NO_OPINION leaves it to the next."""

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


ALLOW, DENY, NO_OPINION = Decision  # Python 3.11 takes its time to find a member by name

Answer = tuple[Decision, str]
"""A decision and its reason."""


class Undecided(Exception):
    """An authorizer could not find out (a webhook that does not answer); `decision` is what it falls back to."""

    def __init__(self, message: str, decision: Decision = Decision.NO_OPINION) -> None:
        super().__init__(message)
        self.message = message
        self.decision = decision


class Authorizer(Protocol):
    """One authority."""

    kind: str
    """Its mode, as in --authorization-mode; empty for what is always there."""
    name: str
    """Among those of its kind."""

    def authorize(self, user: User, info: RequestInfo) -> Answer | Awaitable[Answer]:
        """The decision and its reason, or what to await for them, which may raise Undecided."""
        ...

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        """The user's rules in a namespace, as far as rules can express them."""
        ...


class Authorizers(Protocol):
    """Holds the current authorizers; they are replaced as a whole."""

    @property
    def authorizers(self) -> Sequence[Authorizer]:
        """All of them, in order."""
        ...


class AlwaysAllow:
    """Everybody who has been identified may do everything."""

    kind = "AlwaysAllow"
    name = "alwaysallow"

    def authorize(self, user: User, info: RequestInfo) -> Answer:
        return ALLOW, ""

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        everything = ResourceRule(verbs=["*"], api_groups=["*"], resources=["*"])
        every_path = NonResourceRule(verbs=["*"], non_resource_urls=["*"])
        return SubjectRulesReviewStatus(resource_rules=[everything], non_resource_rules=[every_path])


class AlwaysDeny:
    """Denies every request."""

    kind = "AlwaysDeny"
    name = "alwaysdeny"

    def authorize(self, user: User, info: RequestInfo) -> Answer:
        return NO_OPINION, "Everything is forbidden."

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        return SubjectRulesReviewStatus(resource_rules=[], non_resource_rules=[])
