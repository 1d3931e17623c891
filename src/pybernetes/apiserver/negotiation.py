"""Negotiates the media type of the response, from the Accept header, and that of the body.

One seam for codecs: `MEDIA` lists what can be written, `BODIES` what can be read. A media type that cannot be written
is passed over as long as the client accepts another one, so that clients that prefer protobuf or CBOR fall back to
JSON; if nothing is left the answer is 406. A body in a type that cannot be read is 415.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from pybernetes.api.errors import NotAcceptable, UnsupportedMediaType
from pybernetes.net import media as media_types

JSON, YAML, clauses = media_types.JSON, media_types.YAML, media_types.clauses
PROTOBUF = "application/vnd.kubernetes.protobuf"
MEDIA = (JSON, YAML)
BODIES = (*MEDIA, PROTOBUF)
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
CUSTOM_PATCHES = tuple(each for each in PATCHES if "strategic" not in each)
_CONVERSION = frozenset(("as", "g", "v"))
"""Parameters of an Accept header that ask for another kind; each one alone asks for one that there is not."""
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")


class Format(msgspec.Struct, frozen=True, gc=False):
    """How to write the answer. `transform` is Table, PartialObjectMetadata, PartialObjectMetadataList or nothing."""

    media: str = JSON
    transform: str = ""
    version: str = "v1"
    pretty: bool = False
    profile: str = ""


_PLAIN = Format()


def output_format(headers: dict[str, str], query: dict[str, str], *, transforms: tuple[str, ...] = ()) -> Format:
    """The first form the client accepts that can be written. Raises NotAcceptable."""
    accept = headers.get("accept", "")
    pretty = wants_pretty(headers, query)
    if not pretty and accept in ("", "*/*", JSON):
        return _PLAIN
    return _negotiate(accept, transforms, pretty)


def wants_pretty(headers: dict[str, str], query: dict[str, str]) -> bool:
    """Whether JSON is to be indented: the client says so, or is one that people look at."""
    pretty = query.get("pretty")
    return pretty in _TRUE if pretty else headers.get("user-agent", "").startswith(_PRETTY_AGENTS)


@lru_cache(maxsize=512)
def _negotiate(accept: str, transforms: tuple[str, ...], pretty: bool) -> Format:
    known = False
    for media, parameters in clauses(accept):
        if media == "*/*":
            media = JSON
        if media not in MEDIA:
            continue
        known = True
        wanted = parameters.get("pretty")
        pretty_here = pretty if wanted is None else wanted in _TRUE
        if _CONVERSION.isdisjoint(parameters):
            return Format(media, pretty=pretty_here, profile=parameters.get("profile", ""))
        target, group, version = (parameters.get(each, "") for each in ("as", "g", "v"))
        if group == "meta.k8s.io" and version in ("v1", "v1beta1") and target in transforms:
            return Format(media, target, version, pretty_here)
    raise NotAcceptable(MEDIA) if known else _unknown()


def _unknown() -> NotAcceptable:
    """Upstream's router refuses types it has never heard of, in other words than the codecs that come after it."""
    error = NotAcceptable(())
    error.message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(MEDIA)}"
    error.details = {}
    return error


def body_media(headers: dict[str, str]) -> str:
    """JSON, YAML or protobuf, by the Content-Type header; nothing said means JSON. Raises UnsupportedMediaType."""
    content_type = headers.get("content-type", "")
    if not content_type or content_type == JSON:
        return JSON
    media, _, parameters = content_type.partition(";")
    media = media.strip().lower()
    if media in BODIES and all("=" in part for part in parameters.split(";") if part.strip()):
        return media
    raise UnsupportedMediaType(BODIES)


def patch_type(headers: dict[str, str], custom: bool) -> str:
    """The kind of patch in the body, which for a custom resource is never strategic. Raises UnsupportedMediaType."""
    media = headers.get("content-type", "").partition(";")[0].strip()
    if custom and media not in CUSTOM_PATCHES:
        raise UnsupportedMediaType(CUSTOM_PATCHES)
    if media not in PATCHES:
        error = UnsupportedMediaType(())
        error.message = "415: Unsupported Media Type"  # the words of upstream's router
        error.details = {}
        raise error
    return media
