"""Validation of Events.

One object with two faces: through core/v1 it is hardly checked, as it always was; through events.k8s.io/v1 strictly
(`validate_new_event`, `validate_new_event_update`). Both look at the core form, which is the stored one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...equality import semantically_equal
from ...field import FieldError, Path, invalid, required
from ...gocompat.goform import go_field
from ...meta.validation import IMMUTABLE, validate_object_meta, validate_object_meta_update
from ...names import is_dns1123_subdomain, is_qualified_name, name_is_dns_subdomain
from ..v1.event import Event

MAX_REPORTING_INSTANCE: Final = 128
MAX_ACTION: Final = 128
MAX_REASON: Final = 128
MAX_NOTE: Final = 1024

_META: Final = Path("metadata")
_FIXED: Final = (
    ("involved_object", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("first_timestamp", "firstTimestamp"),
    ("last_timestamp", "lastTimestamp"),
    ("count", "count"),
    ("reason", "reason"),  # upstream names it twice
    ("type", "type"),
    ("event_time", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reporting_component", "reportingController"),
    ("reporting_instance", "reportingInstance"),
)


def validate_event(obj: Event) -> list[FieldError]:
    """The rules of core/v1."""
    return _validate(obj, "reportingComponent")


def validate_event_update(new: Event, old: Event) -> list[FieldError]:
    """In core/v1 everything may change."""
    return validate_event(new)


def validate_new_event(obj: Event) -> list[FieldError]:
    """The rules of events.k8s.io/v1: fields of the old kind stay empty."""
    errors = _validate(obj, "reportingController")
    errors += validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    errors += _validate_series(obj)
    if not obj.event_time:
        errors.append(required("eventTime"))
    if obj.type not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {obj.type or ''}"))
    source = obj.source
    for name, given in (
        ("firstTimestamp", obj.first_timestamp),
        ("lastTimestamp", obj.last_timestamp),
        ("count", obj.count),
        ("source", source is not None and (source.component or source.host)),
    ):
        if given:
            errors.append(invalid(name, "", "needs to be unset"))
    return errors


def validate_new_event_update(new: Event, old: Event) -> list[FieldError]:
    """Through events.k8s.io/v1 only the series goes on."""
    errors = _validate(new, "reportingController")
    errors += validate_object_meta_update(new.metadata, old.metadata, _META)
    if not semantically_equal(new.series, old.series):
        errors += _validate_series(new)
    for name, wire in _FIXED:
        if not semantically_equal(getattr(new, name) or None, getattr(old, name) or None):
            errors.append(invalid(wire, go_field(new, name), IMMUTABLE))
    return errors


def _validate_series(obj: Event) -> list[FieldError]:
    if obj.series is None:
        return []
    errors: list[FieldError] = []
    if (obj.series.count or 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not obj.series.last_observed_time:
        errors.append(required("series.lastObservedTime"))
    return errors


def _validate(obj: Event, controller_field: str) -> list[FieldError]:
    """Rules for all events. An event with `eventTime` is one of the new kind, wherever it comes from."""
    namespace = (obj.metadata and obj.metadata.namespace) or ""
    about = (obj.involved_object and obj.involved_object.namespace) or ""
    errors: list[FieldError] = []
    if obj.event_time:
        belongs = bool(about) or namespace in ("default", "kube-system")
    else:
        belongs = namespace == about if about else namespace in ("", "default")
    if not belongs:
        errors.append(invalid(Path("involvedObject", "namespace"), about, "does not match event.namespace"))
    if obj.event_time:
        errors += _validate_new_fields(obj, controller_field)
    errors += [invalid("namespace", namespace, problem) for problem in is_dns1123_subdomain(namespace)]
    return errors


def _validate_new_fields(obj: Event, controller_field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = obj.reporting_component or ""
    if not controller:
        errors.append(required(controller_field))
    errors += [invalid(controller_field, controller, problem) for problem in is_qualified_name(controller)]
    for name, value, limit in (
        ("reportingInstance", obj.reporting_instance, MAX_REPORTING_INSTANCE),
        ("action", obj.action, MAX_ACTION),
        ("reason", obj.reason, MAX_REASON),
    ):
        if not value:
            errors.append(required(name))
        elif len(value.encode("utf-8", "replace")) > limit:
            errors.append(invalid(name, "", f"can have at most {limit} characters"))
    if len((obj.message or "").encode("utf-8", "replace")) > MAX_NOTE:
        errors.append(invalid("message", "", f"can have at most {MAX_NOTE} characters"))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"Event": validate_event}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Event": validate_event_update}
