"""VolumeBinding: pods where their volumes are, and volumes where their pods go (`plugin.py` says how)."""

from __future__ import annotations

from .plugin import VolumeBinding

__all__ = ["VolumeBinding"]
