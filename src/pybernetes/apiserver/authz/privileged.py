"""Members of system:masters may do everything, whatever the other authorizers say; upstream puts this first, always.

It is the way back in for an administrator who has locked out all users.
"""

from __future__ import annotations

from pybernetes.api.authorization.v1 import SubjectRulesReviewStatus

from ..requestinfo import RequestInfo
from ..user import User
from .authorizer import ALLOW, NO_OPINION, Answer

PRIVILEGED = "system:masters"


class PrivilegedGroups:
    """Allows the group."""

    kind = ""
    name = ""

    def authorize(self, user: User, info: RequestInfo) -> Answer:
        """Allowed for members."""
        return (ALLOW if PRIVILEGED in user.groups else NO_OPINION), ""

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        """None: upstream does not tell them either."""
        return SubjectRulesReviewStatus(resource_rules=[], non_resource_rules=[], incomplete=False)
