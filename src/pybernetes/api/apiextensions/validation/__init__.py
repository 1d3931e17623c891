"""Validation of CustomResourceDefinitions: create, update, status update; one module a subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError
from .definition import (
    validate_custom_resource_definition,
    validate_custom_resource_definition_status_update,
    validate_custom_resource_definition_update,
)

CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "CustomResourceDefinition": validate_custom_resource_definition
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "CustomResourceDefinition": validate_custom_resource_definition_update
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "CustomResourceDefinition": validate_custom_resource_definition_status_update
}
