"""Prevents privilege escalation: users grant only permissions that they have.

Who writes a role needs every permission in it, and who writes a binding every permission of the role it refers to;
or the verb `escalate` on the role, `bind` on the role that is referred to, or membership in system:masters, which can
do anything anyway. What only lets the garbage collector do its work needs nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pybernetes.api.equality import semantically_equal
from pybernetes.api.errors import BadRequest, Forbidden, NotFound
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.rbac.defaults import GROUP
from pybernetes.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef

from ..registry.strategy import Context
from ..requestinfo import RequestInfo
from .coverage import Missing, TooManyCombinations, describe, missing, quoted_list
from .messages import aggregate
from .privileged import PRIVILEGED
from .resolver import resolver
from .union import allows

_EVERYTHING: Final = (
    PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),
    PolicyRule(verbs=["*"], non_resource_urls=["*"]),
)


async def check_role(new: Role | ClusterRole, old: Role | ClusterRole | None, context: Context, plural: str) -> None:
    """Let a role be written. Raises Forbidden, which says what the user would have to be allowed."""
    if PRIVILEGED in context.user.groups or only_for_garbage_collection(new, old):
        return
    question = RequestInfo("", "escalate", {}, True, GROUP, "*", plural, "", context.namespace, context.name)
    if await allows(context.registry.authorizers, context.user, question):
        return
    _confirm(new.rules or [], new, context, plural)
    if (_aggregates(new) or _aggregates(old)) and _lacking(_EVERYTHING, context).rules:
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise Forbidden(GROUP, plural, _name(new), why)


async def check_binding(
    new: RoleBinding | ClusterRoleBinding, old: RoleBinding | ClusterRoleBinding | None, context: Context, plural: str
) -> None:
    """Let a binding be written. Raises Forbidden, or NotFound if the role is not there to be looked at."""
    if PRIVILEGED in context.user.groups or only_for_garbage_collection(new, old):
        return
    reference = new.role_ref or RoleRef()
    if reference.kind in ("Role", "ClusterRole"):
        roles = f"{reference.kind.lower()}s"
        group, name = reference.api_group or "", reference.name or ""
        question = RequestInfo("", "bind", {}, True, group, "*", roles, "", context.namespace, name)
        if await allows(context.registry.authorizers, context.user, question):
            return
    if reference.kind == "Role" and not context.namespace:
        raise BadRequest("Namespace parameter required.")  # what becomes of the search for such a role upstream
    try:
        rules = resolver(context.registry).role_rules(reference, context.namespace)
    except NotFound:
        raise NotFound(GROUP, plural, reference.name or "") from None  # upstream names the resource of the request
    _confirm(rules, new, context, plural)


def only_for_garbage_collection(new: Any, old: Any) -> bool:
    """Whether an update changes nothing but owners and finalizers."""
    if old is None:
        return False
    meta, before = new.metadata, old.metadata
    same = msgspec.structs.replace(
        meta,
        owner_references=before.owner_references,
        finalizers=before.finalizers,
        self_link=before.self_link,
        managed_fields=before.managed_fields,
        resource_version=before.resource_version,
    )
    return semantically_equal(same, before) and all(
        semantically_equal(getattr(new, field), getattr(old, field))
        for field in new.__struct_fields__
        if field not in ("kind", "api_version", "metadata")
    )


def _confirm(rules: list[PolicyRule], obj: Any, context: Context, plural: str) -> None:
    try:
        lacking = _lacking(rules, context)
    except TooManyCombinations:
        why = "the rules combine too many values to be compared with what the user holds; split them into smaller rules"
        raise Forbidden(GROUP, plural, _name(obj), why) from None
    if lacking.rules:
        user = context.user
        why = (
            f"user {quote(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant RBAC permissions not "
            "currently held:\n" + "\n".join(describe(lacking))
        )
        errors = resolver(context.registry).grants(user, context.namespace).errors
        if errors:
            why += f"; resolution errors: [{aggregate(errors)}]"
        raise Forbidden(GROUP, plural, _name(obj), why)


def _lacking(rules: Any, context: Context) -> Missing:
    return missing(resolver(context.registry).grants(context.user, context.namespace).rules, rules)


def _aggregates(role: Any) -> bool:
    return isinstance(role, ClusterRole) and bool(
        role.aggregation_rule and role.aggregation_rule.cluster_role_selectors
    )


def _name(obj: Any) -> str:
    return str(obj.metadata.name or "")
