"""`/flagz` and `/statusz` of any component: how it was started, and since when it runs.

Text for people, unless a client asks for the kind: `Accept: application/json;as=Statusz;v=v1beta1;g=config.k8s.io`.
The separator between a name and its value changes, as upstream's does, so that no program parses the text.
"""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pybernetes.api.errors import NotAcceptable
from pybernetes.api.times import rfc3339
from pybernetes.version import GIT_VERSION

from .media import JSON, YAML, clauses

_TEXT: Final = "text/plain"
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1alpha1", "v1beta1")
_SIGNS: Final = (":", ": ", "=", " ")
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_NOT_FOR_DEBUGGING: Final = ("api", "apis", "openid", "openapi", ".well-known")


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    body: bytes
    content_type: str
    warning: str = ""
    """For a header `Warning`, if there is any."""


def flagz(component: str, flags: Mapping[str, str], accept: str, *, pretty: bool = False) -> Page:
    """The flags of a component, by name. Raises NotAcceptable."""
    sign = random.choice(_SIGNS)
    shown = dict(sorted(flags.items()))
    text = "".join(f"{name}{sign}{value}\n" for name, value in shown.items())
    return _page(component, "Flagz", {"flags": shown}, text, accept, pretty=pretty)


def statusz(component: str, started: float, paths: Iterable[str], accept: str, *, pretty: bool = False) -> Page:
    """Since when (seconds since 1970) a component runs, and where it can be asked. Raises NotAcceptable."""
    folders = sorted({path.split("/")[1] for path in paths} - {"", *_NOT_FOR_DEBUGGING})
    version = GIT_VERSION.removeprefix("v").partition("+")[0]
    status: dict[str, Any] = {
        "startTime": rfc3339(started),
        "uptimeSeconds": max(0, int(time.time() - started)),
        "goVersion": f"python{platform.python_version()}",  # the field's name is upstream's
        "binaryVersion": version,
        "emulationVersion": version.rpartition(".")[0],
        "paths": [f"/{each}" for each in folders],
    }
    sign = random.choice(_SIGNS)
    lines = (
        ("Started", time.strftime("%a %b %e %H:%M:%S UTC %Y", time.gmtime(started))),
        ("Up", _duration(status["uptimeSeconds"])),
        ("Go version", status["goVersion"]),
        ("Binary version", version),
        ("Emulation version", status["emulationVersion"]),
        ("Paths", " ".join(status["paths"])),
    )
    text = "\n" + "".join(f"{name}{sign} {value}\n" for name, value in lines)
    return _page(component, "Statusz", status, text, accept, pretty=pretty)


def _page(component: str, kind: str, fields: dict[str, Any], text: str, accept: str, *, pretty: bool) -> Page:
    media, version = _negotiate(accept, kind)
    if media == _TEXT:
        return Page(f"\n{component} {kind.lower()}\n{_WARNING}\n{text}".encode(), f"{_TEXT}; charset=utf-8")
    head = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": component}}
    body = msgspec.json.encode({**head, **fields})
    if media == YAML:
        from pybernetes.api.yaml import json_to_yaml

        body = json_to_yaml(body)
    else:
        body = msgspec.json.format(body, indent=2) if pretty else body + b"\n"
    old = f"This version of the {kind.lower()} endpoint is deprecated. Please use a newer version."
    warning = f'299 - "{old}"' if version == "v1alpha1" else ""
    return Page(body, f"{media};g={_GROUP};v={version};as={kind}", warning)


def _negotiate(accept: str, kind: str) -> tuple[str, str]:
    """The media type and the version of the kind; text has none. Raises NotAcceptable."""
    if not accept.strip():
        return _TEXT, ""
    for media, parameters in clauses(accept):
        main, _, sub = media.partition("/")
        version = parameters.get("v", "")
        structured = (parameters.get("g"), parameters.get("as")) == (_GROUP, kind) and version in _VERSIONS
        text = () if "as" in parameters else (_TEXT,)
        for offered in (JSON, YAML) if structured else text:
            if main in ("*", offered.partition("/")[0]) and sub in ("*", offered.partition("/")[2]):
                return offered, version
    raise NotAcceptable((JSON, YAML, _TEXT))


def _duration(seconds: int) -> str:
    return f"{seconds // 3600} hr {seconds // 60 % 60:02d} min {seconds % 60:02d} sec"
