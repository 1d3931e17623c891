"""An invalid manifest. Apart from `static`, whose checks take long to load and are not needed without manifests."""

from __future__ import annotations


class InvalidManifest(ValueError):
    """The content of a manifest is not a valid pod."""
