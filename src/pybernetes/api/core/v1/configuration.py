"""core/v1: configuration.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Kind
from ...types import Base64, Pointer


class ConfigMap(Kind):
    """Configuration for pods, readable by everyone who may read it."""

    immutable: Annotated[bool | None, Pointer] = None
    data: dict[str, str] | None = None
    binary_data: dict[str, Base64] | None = None


class Secret(Kind):
    """Small confidential data for pods."""

    immutable: Annotated[bool | None, Pointer] = None
    data: dict[str, Base64] | None = None
    string_data: dict[str, str] | None = None
    type: str | None = None
