"""The data of ConfigMaps and Secrets: --from-file, --from-literal, --from-env-file, and the hash of --append-hash."""

from __future__ import annotations

import os
from base64 import b64encode

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.flags import Flags

_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def file_data(flags: Flags, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Text values of a ConfigMap, and those that are no UTF-8 in base64."""
    text: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, value in entries(flags):
        if key in text or key in binary:
            raise CLIError(
                f'cannot add key "{key}", another key by that name already exists in Data for ConfigMap "{name}"'
            )
        try:
            text[key] = value.decode("utf-8")
        except UnicodeDecodeError:
            binary[key] = b64encode(value).decode()
    return text, binary


def entries(flags: Flags) -> list[tuple[str, bytes]]:
    """Keys and values of the flags. Raises CLIError."""
    files, literals, environment = (flags.words(f"from-{name}") for name in ("file", "literal", "env-file"))
    if environment and (files or literals):
        raise CLIError("from-env-file cannot be combined with from-file or from-literal")
    found: list[tuple[str, bytes]] = []
    for literal in literals:
        found.append(_literal(literal))
    for source in files:
        found += _files(source)
    for path in environment:
        found += _environment(path)
    return found


def _literal(text: str) -> tuple[str, bytes]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CLIError(f"invalid literal source {text}, expected key=value")
    if value[:1] in "\"'" and len(value) > 1 and value[-1] == value[0]:
        value = value[1:-1]
    check_key(key)
    return key, value.encode("utf-8", "surrogateescape")


def _files(source: str) -> list[tuple[str, bytes]]:
    name, equals, path = source.partition("=")
    if not equals:
        name, path = os.path.basename(source), source
    elif not name:
        raise CLIError(f"key name for file path {path} missing")
    elif not path:
        raise CLIError(f"file path for key name {name} missing")
    if "=" in path:
        raise CLIError("key names or file paths cannot contain '='")
    if os.path.isdir(path):
        if equals:
            raise CLIError("cannot give a key name for a directory path")
        found = []
        for entry in sorted(os.listdir(path)):
            full = os.path.join(path, entry)
            if os.path.isfile(full):
                check_key(entry)
                found.append((entry, _read(full)))
        return found
    content = _read(path)
    check_key(name)
    return [(name, content)]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise CLIError(f"error reading {path}: no such file or directory") from None
    except OSError as error:
        raise CLIError(f"error reading {path}: {(error.strerror or '').lower()}") from None


def _environment(path: str) -> list[tuple[str, bytes]]:
    found = []
    for number, line in enumerate(_read(path).decode("utf-8-sig", "replace").split("\n"), 1):
        line = line.lstrip().rstrip("\r")
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not key or any(char.isspace() for char in key):
            raise CLIError(f"error reading {path}: line {number}: invalid key")
        if not equals:
            if key not in os.environ:
                continue
            value = os.environ[key]
        found.append((key, value.encode()))
    return found


def check_key(key: str) -> None:
    """Raises CLIError for a key that no ConfigMap may have."""
    if not key or len(key) > 253 or not all(char in _KEY for char in key) or key in (".", ".."):
        raise CLIError(
            f'"{key}" is not valid key name for a ConfigMap: a valid config key must consist of alphanumeric'
            " characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for"
            " validation is '[-._a-zA-Z0-9]+')"
        )


def append_hash(obj: dict[str, Any], name: str | None = None) -> None:
    """Adds the hash of the content to the object's name; `name` goes into the hash instead of the object's."""
    import hashlib

    from pybernetes.kubectl import data

    hashed = obj["metadata"]["name"] if name is None else name
    if obj["kind"] == "ConfigMap":
        content: dict[str, Any] = {"kind": "ConfigMap", "name": hashed, "data": obj.get("data") or ""}
        if obj.get("binaryData"):
            content["binaryData"] = obj["binaryData"]
    else:
        content = {
            "kind": "Secret",
            "type": obj.get("type", ""),
            "name": hashed,
            "data": obj.get("data") or "",
        }
    digest = hashlib.sha256(data.dumps(content).encode()).hexdigest()[:10]
    safe = digest.translate(str.maketrans("013ae", "ghkmt"))
    obj["metadata"]["name"] += f"-{safe}"
