"""Names of images in full: what `nginx` stands for."""

from __future__ import annotations

import re

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def full_name(name: str) -> str:
    """`nginx` is `docker.io/library/nginx:latest`; a digest stays as it is, a tag beside it goes."""
    if not name or any(character.isspace() for character in name):
        raise ValueError(f"invalid image name {name!r}")
    name, at, digest = name.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError(f"invalid image name {name}@{digest}: not a sha256 digest")
    first, slash, rest = name.partition("/")
    if not slash:
        host, path = "docker.io", f"library/{name}"
    elif "." in first or ":" in first or first == "localhost":
        host, path = first, rest
    else:
        host, path = "docker.io", name
    folder, slash, last = path.rpartition("/")
    repository, colon, tag = last.partition(":")
    if colon and not tag:
        raise ValueError(f"invalid image name {name!r}: the tag is empty")
    base = f"{host}/{folder}{slash}{repository}"
    return f"{base}@{digest}" if at else f"{base}:{tag or 'latest'}"


def is_id(name: str) -> bool:
    """Whether this is the id of an image (the digest of its configuration) rather than a name."""
    return bool(_DIGEST.fullmatch(name) or re.fullmatch(r"[0-9a-f]{64}", name))
