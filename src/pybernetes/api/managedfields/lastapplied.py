"""The annotation of client-side apply, for objects that kubectl moves to server-side apply and back."""

from __future__ import annotations

import msgspec

from ..gocompat import quote
from .compare import compare
from .fieldset import EMPTY, Set
from .node import Node
from .objects import Object, metadata
from .owned import fields_of
from .validate import problems

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
"""The one manager whose annotation is looked at; any other name opts out."""
_ANNOTATIONS_LIMIT = 256 * 1024


def fields_owned(live: Object, node: Node, api_version: str) -> Set:
    """The fields that the annotation names and that are still as it says: kubectl's, though no entry says so."""
    annotation = (metadata(live).get("annotations") or {}).get(ANNOTATION)
    if not annotation:
        return EMPTY
    try:
        applied = msgspec.json.decode(annotation)
    except msgspec.DecodeError:
        return EMPTY
    if not isinstance(applied, dict) or applied.get("apiVersion") != api_version or problems(applied, node):
        return EMPTY
    change = compare(applied, live, node)
    return fields_of(applied, node) - change.modified - change.added - change.removed


def updated(obj: Object, config: Object) -> Object:
    """The object with its annotation, if it has one, as if kubectl had applied the configuration itself."""
    annotations = dict(metadata(obj).get("annotations") or {})
    if not annotations.get(ANNOTATION):
        return obj
    applied = config
    said = metadata(config).get("annotations")
    if said is not None:
        left = {key: value for key, value in said.items() if key != ANNOTATION}
        applied = {**config, "metadata": {**metadata(config), "annotations": left}}
    annotations[ANNOTATION] = quote.json(applied) + "\n"
    if sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**metadata(obj), "annotations": annotations}}
