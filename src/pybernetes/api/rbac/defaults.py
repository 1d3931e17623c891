"""Defaults for the kinds of rbac.authorization.k8s.io/v1: the group of roles, users and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .v1 import ClusterRoleBinding, RoleBinding, RoleRef

GROUP: Final = "rbac.authorization.k8s.io"


def default_binding(binding: RoleBinding | ClusterRoleBinding) -> None:
    """References without a group are to this one; a ServiceAccount has none."""
    reference = binding.role_ref
    if reference is None:
        reference = binding.role_ref = RoleRef()
    if not reference.api_group:
        reference.api_group = GROUP
    for subject in binding.subjects or ():
        if not subject.api_group and subject.kind in ("User", "Group"):
            subject.api_group = GROUP


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "ClusterRoleBinding": default_binding,
    "RoleBinding": default_binding,
}
