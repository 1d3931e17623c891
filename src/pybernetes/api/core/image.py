"""Names of images: what `nginx` stands for, and the tag, which decides the pull policy that an author did not write.

Only what the grammar of image references says; nothing is looked up anywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"({_HOST})/({_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_DIGEST_LENGTH = {"sha256": 64, "sha384": 96, "sha512": 128}
_DOCKER_HUB = ("docker.io", "index.docker.io")
_MAX_NAME = 255


class Reference(NamedTuple):
    """An image's name in its parts; `tag` and `digest` are empty where it has none."""

    host: str
    repository: str
    tag: str
    digest: str

    @property
    def name(self) -> str:
        """Where the image is."""
        return f"{self.host}/{self.repository}"

    @property
    def full(self) -> str:
        """As runtimes keep it: with a tag, or with a digest, beside which a tag says nothing."""
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag or 'latest'}"


@lru_cache(4096)
def parse_reference(image: str) -> Reference:
    """A name as pods have it. ValueError says, in upstream's words, why it is none."""
    if _IDENTIFIER.fullmatch(image):
        raise ValueError(f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings")
    host, slash, rest = image.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost" or host.lower() != host):
        host, rest = "docker.io", image
    if host in _DOCKER_HUB:
        host, rest = "docker.io", rest if "/" in rest else f"library/{rest}"
    repository = rest.partition(":")[0]
    if repository.lower() != repository:
        raise ValueError(f"invalid reference format: repository name ({repository}) must be lowercase")
    found = _REFERENCE.fullmatch(f"{host}/{rest}")
    if found is None:
        raise ValueError("invalid reference format")
    if len(found[2]) > _MAX_NAME:
        raise ValueError(f"repository name must not be more than {_MAX_NAME} characters")
    digest = found[4] or ""
    if digest:
        algorithm, _, digits = digest.partition(":")
        if algorithm not in _DIGEST_LENGTH:
            raise ValueError("unsupported digest algorithm")
        if len(digits) != _DIGEST_LENGTH[algorithm]:
            raise ValueError("invalid checksum digest length")
        if digits.lower() != digits:
            raise ValueError("invalid checksum digest format")
    return Reference(found[1], found[2], found[3] or "", digest)


def image_tag(image: str) -> str | None:
    """The tag to pull: `latest` if there is neither tag nor digest, "" with a digest only, None if no reference."""
    try:
        found = parse_reference(image)
    except ValueError:
        return None
    return found.tag or ("" if found.digest else "latest")


def default_pull_policy(image: str | None) -> str:
    """`Always` for the moving tag `latest`, else `IfNotPresent`."""
    return "Always" if image and image_tag(image) == "latest" else "IfNotPresent"
