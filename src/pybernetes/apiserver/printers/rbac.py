"""Role bindings: which role, and wide: who has it. Roles get the default table."""

from __future__ import annotations

from typing import Final

from pybernetes.api.rbac.v1 import ClusterRoleBinding, RoleBinding, RoleRef

from .printer import AGE, NAME, Cells, Printer, age, name, text, wide


def _binding(binding: RoleBinding | ClusterRoleBinding, now: float) -> Cells:
    role = binding.role_ref or RoleRef()
    subjects: dict[str | None, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.subjects or ():
        if subject.kind in subjects:
            account = subject.kind == "ServiceAccount"
            shown = f"{subject.namespace or ''}/{subject.name or ''}" if account else subject.name or ""
            subjects[subject.kind].append(shown)
    return [
        name(binding),
        f"{role.kind or ''}/{role.name or ''}",
        age(binding, now),
        *[", ".join(each) for each in subjects.values()],
    ]


_BINDING: Final = Printer(
    (
        NAME,
        text("Role", "The role that is given"),
        AGE,
        wide("Users", "Users who have it"),
        wide("Groups", "Groups that have it"),
        wide("ServiceAccounts", "Service accounts that have it"),
    ),
    _binding,
)

PRINTERS: Final[dict[str, Printer]] = {"ClusterRoleBinding": _BINDING, "RoleBinding": _BINDING}
