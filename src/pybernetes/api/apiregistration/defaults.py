"""Defaults for APIServices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .v1 import APIService

HTTPS_PORT: Final = 443


def default_api_service(obj: APIService) -> None:
    """A server is asked at its HTTPS port."""
    service = obj.spec.service if obj.spec else None
    if service is not None and service.port is None:
        service.port = HTTPS_PORT


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"APIService": default_api_service}
