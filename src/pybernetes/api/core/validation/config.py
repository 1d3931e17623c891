"""Validation of ConfigMaps, Secrets and ServiceAccounts.

ConfigMaps are among the most written objects: a valid one costs one dictionary lookup for each key.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from ...field import FieldError, Path, forbidden, invalid, required, too_long
from ...gocompat.gojson import syntax_problem, word
from ...meta.validation import METADATA, validate_immutable, validate_object_meta, validate_object_meta_update
from ...names import is_config_map_key, name_is_dns_subdomain
from ..v1.configuration import ConfigMap, Secret
from ..v1.serviceaccount import ServiceAccount

MAX_SIZE: Final = 1 << 20
"""Bytes of all values together, so that an object fits the store."""

SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"

_DATA: Final = Path("data")
_BINARY_DATA: Final = Path("binaryData")
_FROZEN: Final = "field is immutable when `immutable` is set"

_key = lru_cache(maxsize=4096)(is_config_map_key)


def validate_config_map(obj: ConfigMap) -> list[FieldError]:
    """Keys that can be file names, in one of the two maps only, and not too much of it."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, METADATA)
    data, binary = obj.data, obj.binary_data
    size = 0
    if data:
        for key, value in data.items():
            for problem in _key(key):
                errors.append(invalid(_DATA.key(key), key, problem))
            if binary and key in binary:
                errors.append(invalid(_DATA.key(key), key, "duplicate of key present in binaryData"))
            size += len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if binary:
        for key, value in binary.items():
            for problem in _key(key):
                errors.append(invalid(_BINARY_DATA.key(key), key, problem))
            size += _decoded_size(value)
    if size > MAX_SIZE:
        errors.append(too_long("[]", "", MAX_SIZE))  # upstream's path for "the whole object"
    return errors


def _decoded_size(text: str) -> int:
    """How many bytes a base64 text stands for."""
    return len(text) // 4 * 3 - (2 if text.endswith("==") else text.endswith("="))


def validate_config_map_update(new: ConfigMap, old: ConfigMap) -> list[FieldError]:
    """An immutable ConfigMap keeps its data, and stays immutable."""
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    if old.immutable:
        if not new.immutable:
            errors.append(forbidden("immutable", _FROZEN))
        if (new.data or {}) != (old.data or {}):
            errors.append(forbidden("data", _FROZEN))
        if new.binary_data != old.binary_data:  # where upstream tells empty from absent
            errors.append(forbidden("binaryData", _FROZEN))
    errors += validate_config_map(new)
    return errors


def validate_secret(obj: Secret) -> list[FieldError]:
    """Keys and size as for ConfigMaps; known types need certain keys."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, METADATA)
    data = obj.data or {}
    size = 0
    for key, value in data.items():
        for problem in _key(key):
            errors.append(invalid(_DATA.key(key), key, problem))
        size += _decoded_size(value)
    if size > MAX_SIZE:
        errors.append(too_long(_DATA, "", MAX_SIZE))
    if obj.type != "Opaque":
        _validate_type(obj, data, errors)
    return errors


def _validate_type(obj: Secret, data: dict[str, str], errors: list[FieldError]) -> None:
    match obj.type:
        case "kubernetes.io/service-account-token":
            annotations = (obj.metadata and obj.metadata.annotations) or {}
            if not annotations.get(SERVICE_ACCOUNT_NAME):
                errors.append(required(METADATA.child("annotations").key(SERVICE_ACCOUNT_NAME)))
        case "kubernetes.io/dockercfg":
            _validate_json_object(data, ".dockercfg", errors)
        case "kubernetes.io/dockerconfigjson":
            _validate_json_object(data, ".dockerconfigjson", errors)
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                errors += [required(_DATA.key("username")), required(_DATA.key("password"))]
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                errors.append(required(_DATA.key("ssh-privatekey")))
        case "kubernetes.io/tls":
            errors += [required(_DATA.key(key)) for key in ("tls.crt", "tls.key") if key not in data]


def _validate_json_object(data: dict[str, str], key: str, errors: list[FieldError]) -> None:
    if key not in data:
        errors.append(required(_DATA.key(key)))
        return
    content = b64decode(data[key])
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = syntax_problem(content)
        if problem is None:  # Go replaces bytes that are not UTF-8 and has no depth that small
            return
    else:
        if value is None or isinstance(value, dict):
            return
        problem = f"json: cannot unmarshal {word(value)} into Go value of type map[string]interface {{}}"
    errors.append(invalid(_DATA.key(key), "<secret contents redacted>", problem))


def validate_secret_update(new: Secret, old: Secret) -> list[FieldError]:
    """The type never changes; an immutable Secret keeps its data, and stays immutable."""
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    errors += validate_immutable(new.type, old.type, Path("type"))
    if old.immutable:
        if not new.immutable:
            errors.append(forbidden("immutable", _FROZEN))
        if new.data != old.data:  # where upstream tells empty from absent
            errors.append(forbidden("data", _FROZEN))
    errors += validate_secret(new)
    return errors


def validate_service_account(obj: ServiceAccount) -> list[FieldError]:
    """Only the name matters."""
    return validate_object_meta(obj.metadata, True, name_is_dns_subdomain, METADATA)


def validate_service_account_update(new: ServiceAccount, old: ServiceAccount) -> list[FieldError]:
    """Everything but the identity may change."""
    return validate_object_meta_update(new.metadata, old.metadata, METADATA) + validate_service_account(new)


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "ConfigMap": validate_config_map,
    "Secret": validate_secret,
    "ServiceAccount": validate_service_account,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ConfigMap": validate_config_map_update,
    "Secret": validate_secret_update,
    "ServiceAccount": validate_service_account_update,
}
