"""The tag of an image name, which decides the pull policy that an author did not write.

Only what the grammar of image references says; nothing is looked up anywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"((?:{_HOST})/(?:{_COMPONENT})(?:/{_COMPONENT})*)"
    r"(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_DIGEST_LENGTH = {"sha256": 64, "sha384": 96, "sha512": 128}
_MAX_NAME = 255


@lru_cache(4096)
def image_tag(image: str) -> str | None:
    """The tag to pull: `latest` if there is neither tag nor digest, "" with a digest only, None if no reference."""
    if _IDENTIFIER.fullmatch(image):
        return None
    host, slash, rest = image.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost" or host.lower() != host):
        host, rest = "docker.io", image
    if host in ("docker.io", "index.docker.io") and "/" not in rest:
        rest = f"library/{rest}"
    found = _REFERENCE.fullmatch(f"{host}/{rest}")
    if found is None or len(found[1]) > _MAX_NAME:
        return None
    if found[3] is not None:
        algorithm, _, digits = found[3].partition(":")
        if len(digits) != _DIGEST_LENGTH.get(algorithm) or digits.lower() != digits:
            return None
        return found[2] or ""
    return found[2] or "latest"


def default_pull_policy(image: str | None) -> str:
    """`Always` for the moving tag `latest`, else `IfNotPresent`."""
    return "Always" if image and image_tag(image) == "latest" else "IfNotPresent"
