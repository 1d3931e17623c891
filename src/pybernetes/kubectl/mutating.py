"""Shared by commands that change objects: their flags, dry runs, validation, the last-applied annotation, messages."""

from __future__ import annotations

from pybernetes.kubectl import data
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printing import PRINT_FLAGS, printer_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.flags import Flags
    from pybernetes.kubectl.printing import Printer

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CHANGE_CAUSE = "kubernetes.io/change-cause"

FILENAME_FLAGS: tuple[Flag, ...] = (
    Flag("filename", "list", short="f", help="Files, folders or URLs with the objects."),
    Flag("kustomize", short="k", help="Folder of a kustomization."),
    Flag("recursive", "bool", short="R", help="Go through folders below the folder of -f."),
)
DRY_RUN = Flag(
    "dry-run",
    default="none",
    no_value="unchanged",
    help='"none", "server" or "client": whether the change is only shown.',
)
VALIDATE = Flag(
    "validate", default="strict", no_value="strict", help='"strict", "warn" or "ignore": unknown and repeated fields.'
)
SAVE_CONFIG = Flag("save-config", "bool", help="Keep the configuration in the object's annotation for later applies.")
SELECTOR = Flag("selector", short="l", help="Select objects by label.")
FIELD_SELECTOR = Flag("field-selector", help="Select objects by field.")
ALL = Flag("all", "bool", help="All objects of the given types in the namespace.")
ALL_NAMESPACES = Flag("all-namespaces", "bool", short="A", help="Objects of all namespaces.")
LOCAL = Flag("local", "bool", help="Change only what is given, without asking the server.")
RECORD = Flag(
    "record", "bool", help="Write the command line into the object's change-cause annotation.", hidden=True,
    deprecated="--record will be removed in the future",
)  # fmt: skip


def field_manager(default: str) -> Flag:
    """`--field-manager`."""
    return Flag("field-manager", default=default, help="Name of the manager that owns the fields.")


__all__ = ["PRINT_FLAGS", "printer_for"]


def dry_run(flags: Flags) -> str:
    """`none`, `client` or `server`. Raises CLIError."""
    import sys

    value = flags.text("dry-run")
    if value == "unchanged":
        sys.stderr.write("Warning: --dry-run is deprecated and can be replaced with --dry-run=client.\n")
        return "client"
    if value in ("none", "client", "server"):
        return value
    if value.lower() in ("true", "1", "t"):
        sys.stderr.write(
            f"Warning: --dry-run={value} is deprecated (boolean value) and can be replaced with --dry-run=client.\n"
        )
        return "client"
    if value.lower() in ("false", "0", "f"):
        sys.stderr.write(
            f"Warning: --dry-run={value} is deprecated (boolean value) and can be replaced with --dry-run=none.\n"
        )
        return "none"
    raise CLIError(f'Invalid dry-run value ({value}). Must be "none", "server", or "client".')


def validation(flags: Flags) -> str:
    """The fieldValidation parameter of `--validate`. Raises CLIError."""
    value = flags.text("validate")
    found = {"strict": "Strict", "true": "Strict", "warn": "Warn", "ignore": "Ignore", "false": "Ignore"}.get(value)
    if found is None:
        raise CLIError(
            f'invalid - validate option "{value}"; must be one of: strict (or true), warn, ignore (or false)'
        )
    return found


def parameters(flags: Flags, dry: str = "none") -> dict[str, Any]:
    """The query parameters of a write."""
    found: dict[str, Any] = {}
    if "field-manager" in flags:
        found["fieldManager"] = flags.text("field-manager")
    if "validate" in flags:
        found["fieldValidation"] = validation(flags)
    if dry == "server":
        found["dryRun"] = "All"
    return found


def set_last_applied(obj: dict[str, Any], only_existing: bool = False) -> None:
    """Writes the object's own configuration into its last-applied annotation."""
    metadata = obj.setdefault("metadata", {})
    annotations = metadata.get("annotations")
    if only_existing and LAST_APPLIED not in (annotations or {}):
        return
    text = last_applied(obj)
    annotations = dict(annotations or {})
    annotations[LAST_APPLIED] = text
    metadata["annotations"] = annotations


def last_applied(obj: dict[str, Any]) -> str:
    """The configuration of an object as the annotation holds it."""
    bare = dict(obj)
    metadata = dict(bare.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(LAST_APPLIED, None)
    metadata["annotations"] = annotations
    bare["metadata"] = metadata
    return data.dumps(bare) + "\n"


def record(context: Context, obj: dict[str, Any]) -> None:
    """Writes the command line into the change-cause annotation where `--record` asks for it."""
    if context.flags.on("record"):
        metadata = obj.setdefault("metadata", {})
        annotations = metadata.get("annotations") or {}
        annotations[CHANGE_CAUSE] = change_cause(context)
        metadata["annotations"] = annotations


def change_cause(context: Context) -> str:
    """The command line as `--record` writes it."""
    return "kubectl " + " ".join(context.argv)


def create(context: Context, info: Info, dry: str, printer: Printer) -> dict[str, Any]:
    """Creates an object (or only shows it) and prints the result."""
    if dry != "client":
        info.refresh(post(context, info, info.object, dry))
    elif info.mapping.namespaced:
        info.object.setdefault("metadata", {}).setdefault("namespace", info.namespace)
    context.out(printer(info.object))
    return info.object


def post(context: Context, info: Info, obj: dict[str, Any], dry: str = "none") -> dict[str, Any]:
    """Creates an object; a version that it was read with counts no more."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("resourceVersion", None)
    found: dict[str, Any] = context.client.post(info.collection(), obj, parameters(context.flags, dry))
    return found


def patch(context: Context, info: Info, kind: str, body: Any, dry: str = "none", sub: str = "") -> dict[str, Any]:
    """Patches an object on the server."""
    found: dict[str, Any] = context.client.patch(info.path(sub), kind, body, parameters(context.flags, dry))
    return found
