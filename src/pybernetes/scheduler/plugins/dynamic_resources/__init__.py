"""DynamicResources: devices for pods' ResourceClaims (`plugin.py` says how)."""

from __future__ import annotations

from .plugin import DynamicResources

__all__ = ["DynamicResources"]
