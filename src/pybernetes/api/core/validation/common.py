"""Small rules that many fields of the core group share: DNS names, paths, quantities, identifiers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from ... import names
from ...field import FieldError, Path, invalid, not_supported, required, too_long
from ...gocompat.goform import go_values
from ...meta.validation import NOT_NEGATIVE
from ...quantity import Quantity

POSITIVE: Final = "must be greater than zero"
FILE_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MAX_CSI_DRIVER_NAME: Final = 63
_CACHE: Final = 4096

dns1123_label = lru_cache(_CACHE)(names.is_dns1123_label)
dns1123_subdomain = lru_cache(_CACHE)(names.is_dns1123_subdomain)
qualified_name = lru_cache(_CACHE)(names.is_qualified_name)
port_name = lru_cache(_CACHE)(names.is_port_name)
env_name = lru_cache(_CACHE)(names.is_relaxed_env_var_name)
config_key = lru_cache(_CACHE)(names.is_config_map_key)


def validate_dns1123_label(value: str, path: Path) -> list[FieldError]:
    """A name without dots."""
    return [invalid(path, value, problem) for problem in dns1123_label(value)]


def validate_dns1123_subdomain(value: str, path: Path) -> list[FieldError]:
    """A name with dots: that of most objects."""
    return [invalid(path, value, problem) for problem in dns1123_subdomain(value)]


def validate_qualified_name(value: str, path: Path) -> list[FieldError]:
    """A name with an optional domain and slash before it."""
    return [invalid(path, value, problem) for problem in qualified_name(value)]


def validate_positive(value: int | None, path: Path) -> list[FieldError]:
    """A number from 1 on."""
    return [] if value is not None and value > 0 else [invalid(path, value or 0, POSITIVE)]


def validate_nonnegative_quantity(value: Quantity, path: Path) -> list[FieldError]:
    """A quantity from 0 on."""
    return [] if value.mantissa >= 0 else [invalid(path, str(value), NOT_NEGATIVE)]


def validate_positive_quantity(value: Quantity, path: Path) -> list[FieldError]:
    """A quantity above 0."""
    return [] if value.mantissa > 0 else [invalid(path, str(value), POSITIVE)]


def validate_id(value: int | None, path: Path, name: str) -> list[FieldError]:
    """The number of a user or group in a field of that name; absent is fine."""
    if value is None or 0 <= value <= names.MAX_ID:
        return []
    return [invalid(path.child(name), value, problem) for problem in names.is_user_id(value)]


def validate_file_mode(mode: int | None, path: Path, name: str = "defaultMode") -> list[FieldError]:
    """Permission bits in a field of that name; absent is fine."""
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(path.child(name), mode, FILE_MODE)]


def validate_path_no_backsteps(target: str, path: Path) -> list[FieldError]:
    """A path that never goes up."""
    if ".." in target and ".." in target.split("/"):
        return [invalid(path, target, "must not contain '..'")]
    return []


def validate_local_descending_path(target: str, path: Path) -> list[FieldError]:
    """A relative path that never goes up."""
    if ".." not in target and not target.startswith("/"):
        return []
    errors = validate_path_no_backsteps(target, path)
    return [invalid(path, target, "must be a relative path"), *errors] if target.startswith("/") else errors


def validate_local_non_reserved_path(target: str, path: Path) -> list[FieldError]:
    """A relative path that does not begin with two dots, which the kubelet uses for itself."""
    errors = validate_local_descending_path(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors


def validate_pull_policy(policy: str | None, path: Path) -> list[FieldError]:
    """When an image is fetched."""
    if policy in PULL_POLICIES:
        return []
    return [not_supported(path, policy, PULL_POLICIES)] if policy else [required(path)]


def validate_port_number_or_name(port: int | str | None, path: Path) -> list[FieldError]:
    """A port by its number or by its name."""
    if type(port) is int and 0 < port < 65536:
        return []
    if isinstance(port, str):
        return [invalid(path, port, problem) for problem in port_name(port)]
    return [invalid(path, port or 0, problem) for problem in names.is_port_number(port or 0)]


def validate_csi_driver_name(name: str | None, path: Path) -> list[FieldError]:
    """The name a CSI driver registers under: a domain in any case."""
    if not name:
        return [required(path)]
    errors: list[FieldError] = []
    if len(name) > _MAX_CSI_DRIVER_NAME:
        errors.append(too_long(path, "", _MAX_CSI_DRIVER_NAME))
    return errors + [invalid(path, name, problem) for problem in dns1123_subdomain(name.lower())]


class InternalForm:
    """A value as upstream's internal types print it in a message: every field, under the name it has in Go."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __str__(self) -> str:
        return msgspec.json.encode(go_values(self._value)).decode()
