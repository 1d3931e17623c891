"""An image's configuration: how its containers start. Strangers wrote it, so every part is checked before it counts.

A configuration of another shape must be refused when the image comes: later it would break the list of all images.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ImageConfig:
    """How a container of an image starts, if it says nothing else."""

    user: str
    env: tuple[str, ...]
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    workdir: str
    stop_signal: str
    volumes: tuple[str, ...]
    diffs: tuple[str, ...] = ()
    """The digests of the layers, unpacked, from the lowest."""


def read_config(raw: bytes) -> ImageConfig:
    """Reads it; ValueError says what is wrong."""
    try:
        content = json.loads(raw)
    except RecursionError:
        raise ValueError("the image's configuration nests without an end") from None
    except ValueError as error:
        raise ValueError(f"the image's configuration is not JSON: {error}") from None
    document = _object(content, "the configuration")
    config = _object(document.get("config") or {}, "config")
    rootfs = _object(document.get("rootfs"), "rootfs")
    return ImageConfig(
        user=_string(config, "User"),
        env=_strings(config, "Env"),
        entrypoint=_strings(config, "Entrypoint"),
        cmd=_strings(config, "Cmd"),
        workdir=_string(config, "WorkingDir"),
        stop_signal=_string(config, "StopSignal"),
        volumes=tuple(sorted(_object(config.get("Volumes") or {}, "Volumes"))),
        diffs=_strings(rootfs, "diff_ids"),
    )


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"the image's configuration is none: {name} is not an object")
    return value


def _string(config: dict[str, Any], key: str) -> str:
    value = config.get(key) or ""
    if not isinstance(value, str) or "\0" in value or not _unicode(value):
        raise ValueError(f"the image's configuration is none: {key} is not a string")
    return value


def _strings(config: dict[str, Any], key: str) -> tuple[str, ...]:
    values = config.get(key) or []
    if not isinstance(values, list) or not all(
        isinstance(each, str) and "\0" not in each and _unicode(each) for each in values
    ):
        raise ValueError(f"the image's configuration is none: {key} is not a list of strings")
    return tuple(values)


def _unicode(value: str) -> bool:
    """JSON can have halves of characters, which neither CRI's messages nor an environment can."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
