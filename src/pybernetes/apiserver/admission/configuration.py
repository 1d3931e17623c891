"""Reads the file of --admission-control-config-file: a part for each plugin, or the path of another file.

    apiVersion: apiserver.config.k8s.io/v1
    kind: AdmissionConfiguration
    plugins:
    - name: PodSecurity
      configuration: {...}
    - name: EventRateLimit
      path: eventconfig.yaml        # relative to the file itself

Older files hold the configuration of one plugin and nothing else; those of ImagePolicyWebhook and PodNodeSelector are
still read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

_VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
_ALONE = {"imagePolicy": "ImagePolicyWebhook", "podNodeSelectorPluginConfig": "PodNodeSelector"}
"""Files of old, by what is in them, and the plugin that each was for."""


class PluginConfiguration(msgspec.Struct, forbid_unknown_fields=True):
    """The part of one plugin."""

    name: str = ""
    path: str = ""
    configuration: Any = None


def read(file: Path | None) -> dict[str, Any]:
    """Configurations by plugin, as plain values. Raises ValueError."""
    if file is None:
        return {}
    document = _document(file)
    kind, version = document.get("kind"), document.get("apiVersion")
    if not kind and not version:
        found = {plugin: document for key, plugin in _ALONE.items() if key in document}
        if found:
            return found
    if kind != "AdmissionConfiguration" or version not in _VERSIONS:
        raise ValueError(
            f'{file}: no kind "{kind or ""}" is registered for version "{version or ""}"; '
            f"an AdmissionConfiguration of {_VERSIONS[0]} is expected"
        )
    unknown = sorted(set(document) - {"kind", "apiVersion", "plugins"})
    if unknown:
        raise ValueError(f'{file}: strict decoding error: unknown field "{unknown[0]}"')
    try:
        plugins = msgspec.convert(document.get("plugins") or [], list[PluginConfiguration])
    except msgspec.ValidationError as error:
        raise ValueError(f"{file}: plugins: {error}") from None
    result: dict[str, Any] = {}
    for each in plugins:
        if each.name in result:
            continue  # the first one counts
        result[each.name] = (
            _document(file.parent / each.path) if each.configuration is None and each.path else each.configuration
        )
    return result


def check_kind(configuration: Any, kind: str, versions: Iterable[str], plugin: str) -> dict[str, Any]:
    """The configuration of a plugin, if it is of the kind that the plugin reads. Raises ValueError."""
    if not isinstance(configuration, dict):
        raise ValueError(f"{plugin}: the configuration is not an object")
    found = (configuration.get("kind"), configuration.get("apiVersion"))
    versions = tuple(versions)
    if found[0] != kind or found[1] not in versions:
        raise ValueError(
            f'{plugin}: no kind "{found[0] or ""}" is registered for version "{found[1] or ""}"; '
            f"{kind} of {versions[0]} is expected"
        )
    return {key: value for key, value in configuration.items() if key not in ("kind", "apiVersion")}


def _document(file: Path) -> dict[str, Any]:
    from pybernetes.api.yaml import yaml_to_json

    try:
        value = msgspec.json.decode(yaml_to_json(file.read_bytes())[0])
    except OSError as error:
        why = error.strerror
        raise ValueError(f'unable to read admission control configuration from "{file}" [{why}]') from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{file}: not an object")
    return value
