"""Which requests the API server records: rules, the first that fits decides.

A request that names a recorded span is part of it and always recorded. Others are recorded if they change something:
they begin a trace of their own. Left out is what components do to stay alive (leases, reviews), events (they are marks
in spans) and what only reads.
"""

from __future__ import annotations

from typing import Final

import msgspec

_REVIEWS: Final = "authorization.k8s.io"
WRITES: Final = frozenset(("create", "update", "patch", "delete", "deletecollection"))


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests, and whether they are recorded. Empty = any."""

    record: bool
    verbs: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()

    def fits(self, verb: str, group: str, resource: str) -> bool:
        """Whether the rule speaks of a request."""
        return (
            (not self.verbs or verb in self.verbs)
            and (not self.groups or group in self.groups)
            and (not self.resources or resource in self.resources)
        )


DEFAULT: Final = (
    Rule(False, groups=frozenset({"coordination.k8s.io"}), resources=frozenset({"leases"})),
    Rule(False, groups=frozenset({_REVIEWS, "authentication.k8s.io"})),
    Rule(False, groups=frozenset({"", "events.k8s.io"}), resources=frozenset({"events"})),
    Rule(True, verbs=WRITES),
    Rule(False),
)


def records(rules: tuple[Rule, ...], verb: str, group: str, resource: str) -> bool:
    """The decision of the first rule that matches; no if none does."""
    return next((rule.record for rule in rules if rule.fits(verb, group, resource)), False)
