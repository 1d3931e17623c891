"""Validation of a RuntimeClass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import names
from ..apps.shared import in_order
from ..core.v1.affinity import Toleration
from ..core.v1.compute import ResourceRequirements
from ..core.validation.options import TEMPLATE
from ..core.validation.resources import validate_container_resources
from ..core.validation.scheduling import validate_tolerations
from ..field import FieldError, Path, duplicate, invalid, required
from ..meta.validation import (
    validate_immutable,
    validate_labels,
    validate_object_meta,
    validate_object_meta_update,
)
from .v1 import RuntimeClass, Scheduling


def validate_runtime_class(runtime_class: RuntimeClass) -> list[FieldError]:
    """A new class."""
    errors = validate_object_meta(runtime_class.metadata, False, names.name_is_dns_subdomain, custom=True)
    handler = runtime_class.handler
    if not handler:
        errors.append(required(Path("handler")))
    else:
        errors += [invalid(Path("handler"), handler, problem) for problem in names.is_dns1123_label(handler)]
    if runtime_class.overhead is not None:
        fixed = ResourceRequirements(limits=runtime_class.overhead.pod_fixed)
        errors += validate_container_resources(fixed, (), Path("overhead"), TEMPLATE)
    if runtime_class.scheduling is not None:
        errors += _validate_scheduling(runtime_class.scheduling, Path("scheduling"))
    return errors


def validate_runtime_class_update(new: RuntimeClass, old: RuntimeClass) -> list[FieldError]:
    """A changed class: pods rely on its handler."""
    errors = validate_runtime_class(new)
    errors += validate_object_meta_update(new.metadata, old.metadata, custom=True)
    return errors + validate_immutable(new.handler, old.handler, Path("handler"))


def _validate_scheduling(scheduling: Scheduling, path: Path) -> list[FieldError]:
    errors = validate_labels(scheduling.node_selector, path.child("nodeSelector"))
    tolerations = scheduling.tolerations or []
    errors += validate_tolerations(tolerations, path.child("tolerations"))
    return errors + _validate_unique(tolerations, path.child("tolerations"))


def _validate_unique(tolerations: Sequence[Toleration], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, ...]] = set()
    for index, each in enumerate(tolerations):
        key = (each.key or "", each.operator or "", each.value or "", each.effect or "")
        if key in seen:
            errors.append(duplicate(path.index(index), _printed(each)))
        seen.add(key)
    return errors


def _printed(toleration: Toleration) -> Any:
    return in_order(
        Key=toleration.key or "",
        Operator=toleration.operator or "",
        Value=toleration.value or "",
        Effect=toleration.effect or "",
        TolerationSeconds=toleration.toleration_seconds,
    )


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"RuntimeClass": validate_runtime_class}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"RuntimeClass": validate_runtime_class_update}
