"""Names of images in full, and ids; the grammar is the API's (`api/core/image.py`)."""

from __future__ import annotations

import re

from pybernetes.api.core.image import parse_reference

_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")


def full_name(name: str) -> str:
    """`nginx` is `docker.io/library/nginx:latest`; a digest stays as it is, a tag beside it goes. ValueError."""
    found = parse_reference(name)
    if found.digest and not found.digest.startswith("sha256:"):
        raise ValueError("digests are supported that are sha256")
    return found.full


def is_id(name: str) -> bool:
    """Whether this is the id of an image (the digest of its configuration) rather than a name."""
    return bool(_ID.fullmatch(name))
