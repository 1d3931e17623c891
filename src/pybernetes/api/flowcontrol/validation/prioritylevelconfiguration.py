"""PriorityLevelConfigurations."""

from __future__ import annotations

import math
from typing import Final

from msgspec.structs import replace

from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...gocompat.goform import go_form
from ...meta.validation import METADATA, validate_object_meta
from ...names import name_is_dns_subdomain
from ..mandatory import EXEMPT, priority_level_configurations
from ..v1 import (
    ExemptPriorityLevelConfiguration,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
    QueuingConfiguration,
)
from .conditions import validate_conditions

MAX_QUEUES: Final = 10_000_000
MAX_HASH_BITS: Final = 60  # of a hash of 64; the rest keeps the hands even
ZERO_SHARES_ANNOTATION: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"

_SPEC = Path("spec")


def validate_priority_level_configuration(obj: PriorityLevelConfiguration) -> list[FieldError]:
    """Validate a new PriorityLevelConfiguration."""
    meta = obj.metadata
    errors = validate_object_meta(meta, False, name_is_dns_subdomain)
    name = (meta and meta.name) or ""
    if meta and ZERO_SHARES_ANNOTATION in (meta.annotations or ()):
        detail = f"annotation '{ZERO_SHARES_ANNOTATION}' is forbidden"
        errors.append(forbidden(METADATA.child("annotations"), detail))
    spec = obj.spec or PriorityLevelConfigurationSpec()
    errors += _validate_spec(name, spec)
    errors += _validate_mandatory(name, spec)
    return errors + validate_conditions(obj.status)


def validate_priority_level_configuration_update(
    new: PriorityLevelConfiguration, old: PriorityLevelConfiguration
) -> list[FieldError]:
    """Everything may change."""
    return validate_priority_level_configuration(new)


def validate_priority_level_configuration_status_update(
    new: PriorityLevelConfiguration, old: PriorityLevelConfiguration
) -> list[FieldError]:
    """Only the status is looked at."""
    return validate_conditions(new.status)


def _validate_mandatory(name: str, spec: PriorityLevelConfigurationSpec) -> list[FieldError]:
    wanted = priority_level_configurations().get(name)
    if wanted is None:
        return []
    have, detail = spec, f"spec of '{name}' must equal the fixed value"
    if name == EXEMPT:
        have = replace(spec, exempt=wanted.exempt)
        detail = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
    if semantically_equal(have, wanted):
        return []
    return [invalid(_SPEC, go_form(spec), detail)]


def _validate_spec(name: str, spec: PriorityLevelConfigurationSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = spec.type or ""
    if (name == EXEMPT) != (kind == "Exempt"):
        errors.append(invalid(_SPEC.child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if spec.limited is not None:
            errors.append(forbidden(_SPEC.child("limited"), "must be nil if the type is not Limited"))
        if spec.exempt is not None:
            errors += _validate_exempt(spec.exempt, _SPEC.child("exempt"))
    elif kind == "Limited":
        if spec.exempt is not None:
            errors.append(forbidden(_SPEC.child("exempt"), "must be nil if the type is Limited"))
        if spec.limited is None:
            errors.append(required(_SPEC.child("limited"), "must not be empty when type is Limited"))
        else:
            errors += _validate_limited(spec.limited, _SPEC.child("limited"))
    elif not kind:
        errors.append(required(_SPEC.child("type")))
    else:
        errors.append(not_supported(_SPEC.child("type"), kind, ("Exempt", "Limited")))
    return errors


def _validate_exempt(exempt: ExemptPriorityLevelConfiguration, path: Path) -> list[FieldError]:
    return _validate_shares(exempt, path) + _validate_lendable(exempt, path)


def _validate_limited(limited: LimitedPriorityLevelConfiguration, path: Path) -> list[FieldError]:
    errors = _validate_shares(limited, path)
    errors += _validate_response(limited.limit_response or LimitResponse(), path.child("limitResponse"))
    errors += _validate_lendable(limited, path)
    limit = limited.borrowing_limit_percent
    if limit is not None and limit < 0:
        detail = "if specified, must be a non-negative integer"
        errors.append(invalid(path.child("borrowingLimitPercent"), limit, detail))
    return errors


def _validate_shares(
    level: ExemptPriorityLevelConfiguration | LimitedPriorityLevelConfiguration, path: Path
) -> list[FieldError]:
    shares = level.nominal_concurrency_shares or 0
    return [invalid(path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer")] * (shares < 0)


def _validate_lendable(
    level: ExemptPriorityLevelConfiguration | LimitedPriorityLevelConfiguration, path: Path
) -> list[FieldError]:
    percent = level.lendable_percent or 0
    if 0 <= percent <= 100:
        return []
    return [invalid(path.child("lendablePercent"), percent, "must be between 0 and 100, inclusive")]


def _validate_response(response: LimitResponse, path: Path) -> list[FieldError]:
    kind, queuing = response.type or "", response.queuing
    if kind == "Reject":
        detail = "must be nil if limited.limitResponse.type is not Limited"
        return [forbidden(path.child("queuing"), detail)] if queuing is not None else []
    if kind == "Queue":
        if queuing is None:
            detail = "must not be empty if limited.limitResponse.type is Limited"
            return [required(path.child("queuing"), detail)]
        return _validate_queuing(queuing, path.child("queuing"))
    if not kind:
        return [required(path.child("type"))]
    return [not_supported(path.child("type"), kind, ("Queue", "Reject"))]


def _validate_queuing(queuing: QueuingConfiguration, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    queues, hand, length = queuing.queues or 0, queuing.hand_size or 0, queuing.queue_length_limit or 0
    if length <= 0:
        errors.append(invalid(path.child("queueLengthLimit"), length, "must be positive"))
    if queues <= 0:
        errors.append(invalid(path.child("queues"), queues, "must be positive"))
    elif queues > MAX_QUEUES:
        errors.append(invalid(path.child("queues"), queues, f"must not be greater than {MAX_QUEUES}"))
    at = path.child("handSize")
    if hand <= 0:
        errors.append(invalid(at, hand, "must be positive"))
    elif hand > queues:
        errors.append(invalid(at, hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > MAX_HASH_BITS:
        detail = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
        errors.append(invalid(at, hand, detail))
    return errors
