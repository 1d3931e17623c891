"""Permissions for the parts of a ResourceClaim's status.

The status has several writers: schedulers allocate and reserve, drivers tell how their devices do. Permission to update
`resourceclaims/status` is not enough for all of them: the first needs `resourceclaims/binding` in the whole cluster;
for the second `resourceclaims/driver`, where the driver is the name and the verb has a prefix that says whether it is
for claims of the account's own node (`associated-node:`) or for all (`arbitrary-node:`). Neither is a resource that is
served.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import FieldError, Path, forbidden
from pybernetes.api.resource.v1 import AllocationResult, ResourceClaim, ResourceClaimStatus
from pybernetes.api.resource.validation.claimstatus import device_of

from ..authn.serviceaccount import NODE_NAME, USER_PREFIX
from ..registry.strategy import Context
from ..requestinfo import RequestInfo
from ..user import User
from . import union
from .authorizer import ALLOW

GROUP: Final = "resource.k8s.io"
_ASSOCIATED: Final = "associated-node:"
_ARBITRARY: Final = "arbitrary-node:"


async def check_claim_status(new: ResourceClaim, old: ResourceClaim, context: Context) -> list[FieldError]:
    """Errors for the fields that the user may not change, though they may update the status."""
    status, before = new.status or ResourceClaimStatus(), old.status or ResourceClaimStatus()
    errors = []
    if not (
        semantically_equal(status.allocation, before.allocation)
        and semantically_equal(status.reserved_for or None, before.reserved_for or None)
    ):
        why = await _refusal(context, context.verb, "binding", "", "")
        if why:
            detail = "changing status.allocation or status.reservedFor requires "
            detail += f'resource="resourceclaims/binding", verb="{context.verb}" permission: {why}'
            errors.append(forbidden(Path("status", "allocation"), detail))
    if status.allocation is None:
        return errors
    prefixes = [_ARBITRARY]
    if _is_on(context.user, _node_of(status.allocation)):
        prefixes.insert(0, _ASSOCIATED)
    verbs = [f"{prefix}{context.verb}" for prefix in prefixes]
    for driver in sorted(_changed_drivers(status, before)):
        refusals = []
        for verb in verbs:
            why = await _refusal(context, verb, "driver", context.namespace, driver)
            if not why:
                break
            refusals.append(why)
        else:
            detail = f'changing status.devices requires resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" '
            errors.append(forbidden(Path("status", "devices"), f"{detail}permission: {refusals[0]}"))
    return errors


async def _refusal(context: Context, verb: str, subresource: str, namespace: str, name: str) -> str:
    """Why the user may not, in the words of the authorizers; empty if they may."""
    question = RequestInfo("", verb, {}, True, GROUP, "v1", "resourceclaims", subresource, namespace, name)
    decision, reason, error = await union.decide(context.registry.authorizers, context.user, question)
    if decision is ALLOW:
        return ""
    return union.forbidden(context.user, question, ": ".join(filter(None, (error, reason)))).message


def _changed_drivers(status: ResourceClaimStatus, before: ResourceClaimStatus) -> set[str]:
    old = {device_of(each): each for each in before.devices or ()}
    drivers = set()
    for each in status.devices or ():
        known = old.pop(device_of(each), None)
        if known is None or not semantically_equal(each, known):
            drivers.add(each.driver or "")
    return drivers | {each.driver or "" for each in old.values()}


def _node_of(allocation: AllocationResult) -> str:
    """The one node that the allocation is for; empty if it is not for one node by its name."""
    terms = (allocation.node_selector and allocation.node_selector.node_selector_terms) or ()
    fields = (terms[0].match_fields or []) if len(terms) == 1 and not terms[0].match_expressions else []
    if len(fields) != 1:
        return ""
    field = fields[0]
    values = field.values or []
    return values[0] if (field.key, field.operator, len(values)) == ("metadata.name", "In", 1) else ""


def _is_on(user: User, node: str) -> bool:
    """Whether the user is a service account whose token is bound to the node."""
    names = user.extra.get(NODE_NAME, ())
    return bool(node) and (user.name or "").startswith(USER_PREFIX) and list(names) == [node]
