"""`kubectl set serviceaccount`."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.setting import FLAGS, change, infos, pod_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`set serviceaccount`."""
    if not arguments:
        raise CLIError("serviceaccount is required")
    *resources, name = arguments
    found, errors = infos(context, resources)

    def mutate(obj: dict[str, Any]) -> None:
        spec = pod_spec(obj)
        if spec is None:
            raise CLIError(f"the object is not a pod or does not have a pod template: *v1.{obj.get('kind')}")
        spec["serviceAccountName"] = name
        if "serviceAccount" in spec:
            spec["serviceAccount"] = name

    return change(context, found, errors, mutate, "serviceaccount updated")


COMMAND = Command(
    "serviceaccount (-f FILENAME | TYPE NAME) SERVICE_ACCOUNT",
    "Update the service account of a resource",
    run,
    flags=FLAGS,
    aliases=("sa",),
)
