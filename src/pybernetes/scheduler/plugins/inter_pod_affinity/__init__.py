"""InterPodAffinity."""

from __future__ import annotations

from .plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
