"""DynamicResources."""

from __future__ import annotations

from .plugin import DynamicResources

__all__ = ["DynamicResources"]
