"""Validation of the kinds of flowcontrol/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError
from .flowschema import validate_flow_schema, validate_flow_schema_status_update, validate_flow_schema_update
from .prioritylevelconfiguration import (
    validate_priority_level_configuration,
    validate_priority_level_configuration_status_update,
    validate_priority_level_configuration_update,
)

CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "FlowSchema": validate_flow_schema,
    "PriorityLevelConfiguration": validate_priority_level_configuration,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "FlowSchema": validate_flow_schema_update,
    "PriorityLevelConfiguration": validate_priority_level_configuration_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "FlowSchema": validate_flow_schema_status_update,
    "PriorityLevelConfiguration": validate_priority_level_configuration_status_update,
}
