"""Validation of a Lease. Nodes renew theirs every few seconds, so this is short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import names
from ..field import FieldError, Path, forbidden, invalid, not_supported
from ..meta.validation import validate_object_meta, validate_object_meta_update
from .v1 import Lease, LeaseSpec

_SPEC = Path("spec")
_STRATEGIES = ("OldestEmulationVersion",)


def validate_lease(lease: Lease) -> list[FieldError]:
    """A new lease."""
    errors = validate_object_meta(lease.metadata, True, names.name_is_dns_subdomain, custom=True)
    return errors + _validate_spec(lease.spec or LeaseSpec())


def validate_lease_update(new: Lease, old: Lease) -> list[FieldError]:
    """A changed lease."""
    errors = validate_object_meta_update(new.metadata, old.metadata, custom=True)
    return errors + _validate_spec(new.spec or LeaseSpec())


def _validate_spec(spec: LeaseSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.lease_duration_seconds is not None and spec.lease_duration_seconds <= 0:
        path = _SPEC.child("leaseDurationSeconds")
        errors.append(invalid(path, spec.lease_duration_seconds, "must be greater than 0"))
    if spec.lease_transitions is not None and spec.lease_transitions < 0:
        path = _SPEC.child("leaseTransitions")
        errors.append(invalid(path, spec.lease_transitions, "must be greater than or equal to 0"))
    if spec.strategy is not None:
        errors += _validate_strategy(spec.strategy, _SPEC.child("strategy", "strategy"))
    if spec.preferred_holder and not spec.strategy:
        path = _SPEC.child("preferredHolder")
        errors.append(forbidden(path, "may only be specified if `strategy` is defined"))
    return errors


def _validate_strategy(strategy: str, path: Path) -> list[FieldError]:
    """A name that Kubernetes defines, or a qualified one. Upstream doubles the end of the path."""
    if "/" in strategy:
        return [invalid(path, strategy, problem) for problem in names.is_qualified_name(strategy)]
    return [] if strategy in _STRATEGIES else [not_supported(path, strategy, _STRATEGIES)]


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"Lease": validate_lease}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Lease": validate_lease_update}
