"""Names of custom resources, and the approval that names of the Kubernetes community need."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from ... import names as rules
from ...field import FieldError, Path, invalid, required
from ...meta.v1.objectmeta import ObjectMeta
from ..v1 import CustomResourceDefinitionNames

APPROVAL: Final = "api-approved.kubernetes.io"
SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def validate_names(names: CustomResourceDefinitionNames, path: Path) -> list[FieldError]:
    """Everything that becomes a part of a URL or of a command."""
    errors: list[FieldError] = []
    for name, value in (("plural", names.plural), ("singular", names.singular)):
        errors += _label(value, path.child(name)) if value else []
    for name, value in (("kind", names.kind), ("listKind", names.list_kind)):
        problems = rules.is_dns1035_label((value or "").lower()) if value else []
        if problems:
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.append(invalid(path.child(name), value, detail))
    for index, short in enumerate(names.short_names or ()):
        errors += _label(short, path.child("shortNames").index(index))
    if names.kind and names.kind == names.list_kind:
        errors.append(invalid(path.child("listKind"), names.list_kind, "kind and listKind may not be the same"))
    for index, category in enumerate(names.categories or ()):
        errors += _label(category, path.child("categories").index(index))
    return errors


def is_protected(group: str) -> bool:
    """Whether a group belongs to the Kubernetes community."""
    return f".{group}".endswith((".k8s.io", ".kubernetes.io"))


def _label(value: str, path: Path) -> list[FieldError]:
    problems = rules.is_dns1035_label(value)
    return [invalid(path, value, ",".join(problems))] if problems else []


def validate_approval(group: str, meta: ObjectMeta, old: ObjectMeta | None) -> list[FieldError]:
    """Groups of the Kubernetes community are reserved."""
    if not is_protected(group):
        return []
    state = approval(meta)
    if state in ("approved", "bypassed") or (old is not None and approval(old) == state):
        return []
    at = Path("metadata", "annotations").key(APPROVAL)
    if state == "missing":
        return [required(at, f'protected groups must have approval annotation "{APPROVAL}", {SEE}')]
    detail = (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with '
        f'"unapproved", {SEE}'
    )
    return [invalid(at, (meta.annotations or {})[APPROVAL], detail)]


def approval(meta: ObjectMeta) -> str:
    """`approved`, `bypassed`, `missing` or `invalid`: what the annotation says of a group of the community."""
    text = (meta.annotations or {}).get(APPROVAL, "")
    if not text:
        return "missing"
    if text.startswith("unapproved"):
        return "bypassed"
    try:
        parts = urlsplit(text)
    except ValueError:
        return "invalid"
    return "approved" if parts.scheme and parts.netloc else "invalid"
