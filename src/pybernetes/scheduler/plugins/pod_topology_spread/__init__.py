"""PodTopologySpread: pods spread evenly over domains (`plugin.py` says how)."""

from __future__ import annotations

from .plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
