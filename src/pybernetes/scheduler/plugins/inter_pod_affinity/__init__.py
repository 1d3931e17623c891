"""InterPodAffinity: pods beside and away from other pods (`plugin.py` says how)."""

from __future__ import annotations

from .plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
