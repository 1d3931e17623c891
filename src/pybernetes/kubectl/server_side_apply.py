"""`apply --server-side`: sends the file as it is; an object that client-side apply managed before is migrated.

Fields that client-side apply owned would otherwise stay when a file drops them. After the first apply the managers
that wrote the last-applied annotation are merged into the new manager, and the file is sent once more.
"""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.data import copy, dumps
from pybernetes.kubectl.errors import CLIError, StatusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context

MANAGER = "kubectl"
_ANNOTATION_MANAGER = "kubectl-last-applied"
_RETRIES = 5


def apply(context: Context, info: Info, dry: str) -> None:
    """Applies one object; the Info holds the server's object afterwards. Raises CLIError."""
    flags = context.flags
    if not info.name:
        generated = (info.object.get("metadata") or {}).get("generateName")
        if generated:
            raise CLIError(f"from {generated}: cannot use generate name with apply")
        raise CLIError("resource name may not be empty")
    if info.mapping.namespaced:
        info.object.setdefault("metadata", {})["namespace"] = info.namespace
    body = dumps(info.object).encode()
    try:
        info.refresh(_send(context, info, body, dry))
    except StatusError as error:
        raise _conflict(error) from None
    try:
        _keep_annotation(context, info, dry)
    except CLIError as error:
        context.err("Warning: failed to save last-applied annotation: " + error.message + "\n")
        return
    try:
        migrated = _migrate(context, info, flags.text("field-manager"), dry)
    except CLIError as error:
        context.err(
            "Warning: server rejected managed fields migration to Server-Side Apply. This is non-fatal and will be"
            f" retried next time you apply. Error: {error.message}\n"
        )
        return
    if migrated:
        try:
            info.refresh(_send(context, info, body, dry))
        except CLIError as error:
            context.err(
                "Warning: failed to re-apply configuration after performing Server-Side Apply migration. This is"
                f" non-fatal and will be retried next time you apply. Error: {error.message}\n"
            )


def _send(context: Context, info: Info, body: bytes, dry: str, manager: str = "") -> dict[str, Any]:
    flags = context.flags
    parameters = mutating.parameters(flags, dry)
    parameters["force"] = True if flags.on("force-conflicts") and not manager else None
    if manager:
        parameters["fieldManager"] = manager
    found: dict[str, Any] = context.client.json(
        "PATCH",
        info.path("" if manager else flags.text("subresource")),
        parameters,
        body,
        content_type="application/apply-patch+yaml",
    )
    return found


def _owners(obj: dict[str, Any], operation: str) -> list[dict[str, Any]]:
    """The managers that own the last-applied annotation."""
    found = []
    for entry in (obj.get("metadata") or {}).get("managedFields") or ():
        metadata = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        if entry.get("operation") == operation and f"f:{mutating.LAST_APPLIED}" in (
            metadata.get("f:annotations") or {}
        ):
            found.append(entry)
    return found


def _keep_annotation(context: Context, info: Info, dry: str) -> None:
    """Gives the annotation an owner of its own before the migration would leave it without one."""
    metadata = info.object.get("metadata") or {}
    text = (metadata.get("annotations") or {}).get(mutating.LAST_APPLIED)
    if context.flags.text("field-manager") != MANAGER or text is None or _owners(info.object, "Apply"):
        return
    wanted: dict[str, Any] = {
        "apiVersion": info.mapping.api_version,
        "kind": info.mapping.kind,
        "metadata": {"name": info.name, "annotations": {mutating.LAST_APPLIED: text}},
    }
    if info.mapping.namespaced:
        wanted["metadata"]["namespace"] = info.namespace
    info.refresh(_send(context, info, dumps(wanted).encode(), dry, _ANNOTATION_MANAGER))


def _migrate(context: Context, info: Info, manager: str, dry: str) -> bool:
    """Merges the managers of client-side apply into `manager`; False where there is nothing to do. Raises CLIError."""
    names = {entry.get("manager", "") for entry in _owners(info.object, "Update")}
    for attempt in range(_RETRIES):
        metadata = info.object.get("metadata") or {}
        before = metadata.get("managedFields") or []
        after = before
        for name in sorted(names):
            after = merged_managers(after, name, manager)
        if after == before:
            return False
        patch = [
            {"op": "replace", "path": "/metadata/managedFields", "value": after},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion", "")},
        ]
        try:
            info.refresh(context.client.patch(info.path(), "json", patch, mutating.parameters(context.flags, dry)))
            return True
        except StatusError as error:
            if error.reason != "Conflict" or attempt == _RETRIES - 1:
                raise
            info.refresh(context.client.get(info.path()))
    return False


def merged_managers(entries: list[dict[str, Any]], old: str, new: str) -> list[dict[str, Any]]:
    """managedFields in which the updates of manager `old` belong to what manager `new` applied."""

    def is_update(entry: dict[str, Any]) -> bool:
        return entry.get("manager") == old and entry.get("operation") == "Update" and not entry.get("subresource")

    entries = copy(entries)
    target = next(
        (
            entry
            for entry in entries
            if entry.get("manager") == new and entry.get("operation") == "Apply" and not entry.get("subresource")
        ),
        None,
    )
    updates = [entry for entry in entries if is_update(entry)]
    if target is None:
        if not updates:
            return entries
        target = updates[0]
        target["manager"], target["operation"] = new, "Apply"
        updates = updates[1:]
    same = next((entry for entry in updates if entry.get("apiVersion") == target.get("apiVersion")), None)
    if same is not None:
        target["fieldsV1"] = _union(target.get("fieldsV1") or {}, same.get("fieldsV1") or {})
    return [entry for entry in entries if not is_update(entry)]


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {key: _union(left.get(key) or {}, right.get(key) or {}) for key in {**left, **right}}


def _conflict(error: StatusError) -> CLIError:
    if error.reason != "Conflict":
        return error
    return CLIError(
        f"{error.message}\n"
        "Please review the fields above--they currently have other managers. Here\nare the ways you can resolve this"
        " warning:\n* If you intend to manage all of these fields, please re-run the apply\n  command with the"
        " `--force-conflicts` flag.\n* If you do not intend to manage all of the fields, please edit your\n  manifest"
        " to remove references to the fields that should keep their\n  current managers.\n* You may co-own fields by"
        " updating your manifest to match the existing\n  value; in this case, you'll become the manager if the other"
        " manager(s)\n  stop managing the field (remove it from their configuration).\nSee"
        " https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"
    )
