"""`kubectl set subject`: adds users, groups and service accounts to a binding."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.create_rbac import _WHO, _subjects
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.setting import FLAGS, change, infos

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`set subject`."""
    flags = context.flags
    if flags.on("all") and flags.get("selector"):
        raise CLIError("cannot set --all and --selector at the same time")
    subjects = _subjects(context)
    if not subjects:
        raise CLIError("you must specify at least one value of user, group or serviceaccount")
    found, errors = infos(context, arguments)

    def mutate(obj: dict[str, Any]) -> None:
        if obj.get("kind") not in ("RoleBinding", "ClusterRoleBinding"):
            raise CLIError("setting subjects is only supported for RoleBinding/ClusterRoleBinding")
        current = list(obj.get("subjects") or [])
        obj["subjects"] = [*current, *(each for each in subjects if each not in current)]

    return change(context, found, errors, mutate, "subjects updated")


COMMAND = Command(
    "subject (-f FILENAME | TYPE NAME) [--user=username] [--group=groupname]"
    " [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none]",
    "Update the user, group, or service account in a role binding or cluster role binding",
    run,
    flags=(*_WHO, *FLAGS, mutating.SELECTOR),
)
