"""Somebody else decides: an access review is posted to them. Answers are kept for a while, yes longer than no."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

import msgspec

from pybernetes.api.authorization.v1 import (
    NonResourceAttributes,
    ResourceAttributes,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)

from ..requestinfo import RequestInfo
from ..review_webhook import ReviewWebhook, WebhookFailed, status_of
from ..user import User
from . import metrics
from .authorizer import Answer, Decision, Undecided
from .conditions import ConditionError, MatchConditions
from .selectors import attributes_of, selectors_of

log = logging.getLogger(__name__)

_KEPT = 8192  # answers; upstream's
_LONGEST = 10_000  # characters of a question whose answer is kept, or any client could fill our memory; upstream's


class Webhook:
    """One webhook."""

    kind = "Webhook"
    name = "default"

    def __init__(
        self,
        remote: ReviewWebhook,
        *,
        version: str = "v1beta1",
        authorized_ttl: float = 300.0,
        unauthorized_ttl: float = 30.0,
        on_error: Decision = Decision.NO_OPINION,
        conditions: MatchConditions | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._remote = remote
        self._version = version
        self._ttl = {True: authorized_ttl, False: unauthorized_ttl}
        self._on_error = on_error
        self._conditions = conditions
        self._clock = clock
        self._answers: dict[bytes, tuple[float, SubjectAccessReviewStatus]] = {}

    async def authorize(self, user: User, info: RequestInfo) -> Answer:
        """The webhook's decision."""
        spec = _spec(user, info)
        if self._conditions is not None and not self._concerned(self._conditions, spec):
            return Decision.NO_OPINION, ""
        key = msgspec.json.encode(spec)
        kept = self._answers.get(key)
        if kept is not None and kept[0] > self._clock():
            status = kept[1]
        else:
            status = await self._ask(spec)
            self._keep(key, info, status)
        reason = status.reason or ""
        if status.denied:
            if status.allowed:
                raise Undecided("webhook subject access review returned both allow and deny response", Decision.DENY)
            return Decision.DENY, reason
        return (Decision.ALLOW if status.allowed else Decision.NO_OPINION), reason

    def _concerned(self, conditions: MatchConditions, spec: SubjectAccessReviewSpec) -> bool:
        """Whether it is to be asked. Raises Undecided."""
        began = self._clock()
        try:
            if conditions.match(spec):
                return True
            metrics.EXCLUSIONS.add(self.kind, self.name)
            return False
        except ConditionError as error:
            metrics.CONDITION_ERRORS.add(self.kind, self.name)
            raise Undecided(str(error), self._on_error) from None
        finally:
            metrics.CONDITION_DURATIONS.observe(self._clock() - began, self.kind, self.name)

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        """Webhooks cannot list rules."""
        error = "webhook authorizer does not support user rule resolution"
        return SubjectRulesReviewStatus(
            resource_rules=[], non_resource_rules=[], incomplete=True, evaluation_error=error
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._remote.close()

    async def _ask(self, spec: SubjectAccessReviewSpec) -> SubjectAccessReviewStatus:
        asked = msgspec.to_builtins(spec)
        if self._version == "v1beta1" and "groups" in asked:
            asked["group"] = asked.pop("groups")
        review: dict[str, Any] = {
            "kind": "SubjectAccessReview",
            "apiVersion": f"authorization.k8s.io/{self._version}",
            "metadata": {},
            "spec": asked,
            "status": {"allowed": False},
        }
        try:
            answer = await self._remote.post(msgspec.json.encode(review), self._attempted)
            return status_of(answer, SubjectAccessReviewStatus, review["apiVersion"], review["kind"])
        except WebhookFailed as failed:
            log.error("Failed to make webhook authorizer request: %s", failed)
            if self._on_error is Decision.NO_OPINION:
                metrics.FAILED_OPEN.add(self.name, failed.outcome)
            raise Undecided(str(failed), self._on_error) from None

    def _attempted(self, outcome: str, seconds: float) -> None:
        metrics.WEBHOOKS.add(self.name, outcome)
        metrics.WEBHOOK_DURATIONS.observe(seconds, self.name, outcome)

    def _keep(self, key: bytes, info: RequestInfo, status: SubjectAccessReviewStatus) -> None:
        parts = (
            info.namespace,
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.subresource,
            info.name,
            info.path,
        )
        ttl = self._ttl[bool(status.allowed)]
        if ttl <= 0 or sum(map(len, parts)) >= _LONGEST:
            return
        self._answers.pop(key, None)
        if len(self._answers) >= _KEPT:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = self._clock() + ttl, status


def _spec(user: User, info: RequestInfo) -> SubjectAccessReviewSpec:
    spec = SubjectAccessReviewSpec(
        user=user.name or None, uid=user.uid or None, groups=list(user.groups) or None, extra=user.extra or None
    )
    if not info.is_resource:
        spec.non_resource_attributes = NonResourceAttributes(path=info.path or None, verb=info.verb or None)
        return spec
    fields, labels = attributes_of(selectors_of(info))
    spec.resource_attributes = ResourceAttributes(
        namespace=info.namespace or None,
        verb=info.verb or None,
        group=info.group or None,
        version=info.version or None,
        resource=info.resource or None,
        subresource=info.subresource or None,
        name=info.object_name or None,
        field_selector=fields,
        label_selector=labels,
    )
    return spec
