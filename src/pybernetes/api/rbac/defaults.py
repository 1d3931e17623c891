"""What is filled in for the kinds of rbac.authorization.k8s.io/v1: the group of roles, users and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..omitempty import drop
from .v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef

GROUP: Final = "rbac.authorization.k8s.io"


def default_binding(binding: RoleBinding | ClusterRoleBinding) -> None:
    """References without a group are to this one; a ServiceAccount has none."""
    drop(binding)
    reference = binding.role_ref
    if reference is None:
        reference = binding.role_ref = RoleRef(kind="", name="")
    if not reference.api_group:
        reference.api_group = GROUP
    for subject in binding.subjects or ():
        if not subject.api_group and subject.kind in ("User", "Group"):
            subject.api_group = GROUP


def default_role(role: Role | ClusterRole) -> None:
    """Nothing is filled in; no rules are written as none."""
    drop(role)
    if not role.rules:
        role.rules = None


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "ClusterRole": default_role,
    "ClusterRoleBinding": default_binding,
    "Role": default_role,
    "RoleBinding": default_binding,
}
