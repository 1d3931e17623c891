"""Validation of a PriorityClass. What pods were promised does not change: neither value nor preemption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import names
from ..field import FieldError, Path, forbidden, not_supported, required
from ..meta.v1.objectmeta import ObjectMeta
from ..meta.validation import validate_immutable, validate_object_meta, validate_object_meta_update
from .v1 import PriorityClass

SYSTEM_PREFIX: Final = "system-"
HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_POLICIES = ("PreemptLowerPriority", "Never")


def validate_priority_class(priority_class: PriorityClass) -> list[FieldError]:
    """A new class; the highest values and the system's names are the system's."""
    meta = priority_class.metadata or ObjectMeta()
    errors = validate_object_meta(meta, False, names.name_is_dns_subdomain)
    name = meta.name or ""
    if name.startswith(SYSTEM_PREFIX):
        problem = _system_problem(name, priority_class)
        if problem:
            detail = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: "
            errors.append(forbidden(Path("metadata", "name"), detail + problem))
    elif (priority_class.value or 0) > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden(Path("value"), detail))
    policy = priority_class.preemption_policy
    if policy == "":
        errors.append(required(Path("preemptionPolicy")))
    elif policy is not None and policy not in _POLICIES:
        errors.append(not_supported(Path("preemptionPolicy"), policy, _POLICIES))
    return errors


def validate_priority_class_update(new: PriorityClass, old: PriorityClass) -> list[FieldError]:
    """A changed class."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    if (new.value or 0) != (old.value or 0):
        errors.append(forbidden(Path("value"), "may not be changed in an update."))
    return errors + validate_immutable(new.preemption_policy, old.preemption_policy, Path("preemptionPolicy"))


def _system_problem(name: str, priority_class: PriorityClass) -> str | None:
    value = SYSTEM_CLASSES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if (priority_class.value or 0) != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if priority_class.global_default else None


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"PriorityClass": validate_priority_class}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"PriorityClass": validate_priority_class_update}
