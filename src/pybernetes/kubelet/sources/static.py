"""From the bytes of a manifest to a static pod: decoded, defaulted, checked, and with a name of this node. Pure."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

import msgspec

from pybernetes.api import strict
from pybernetes.api.core.defaults.pod import default_pod
from pybernetes.api.core.podconfigmaps import config_map_names
from pybernetes.api.core.podsecrets import secret_names
from pybernetes.api.core.v1 import Pod, PodSpec, PodStatus, Toleration
from pybernetes.api.core.validation.pod import validate_pod_create
from pybernetes.api.field import aggregate
from pybernetes.api.gocompat import gojson
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.normalize import normalizer
from pybernetes.api.yaml import YAMLProblem, yaml_to_json

from ..runtime import labels
from .invalid import InvalidManifest

_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def pods_from(data: bytes, source: str, node: str, now: str, *, file: bool) -> list[Pod]:
    """The pod, or the pods of a list, in a manifest; raises `InvalidManifest`.

    `source` is where it was found: the same manifest in two places makes two pods.
    """
    document = _document(data)
    if not isinstance(document, gojson.Pairs):
        raise InvalidManifest("couldn't parse as pod: not an object")
    found = dict(document)
    kind, version = found.get("kind"), found.get("apiVersion")
    if version != "v1" or kind not in ("Pod", "PodList"):
        raise InvalidManifest(f"couldn't parse as pod: no kind {kind!r} of version {version!r} is a pod")
    items = found.get("items") or [] if kind == "PodList" else [document]
    if not isinstance(items, list):
        raise InvalidManifest("couldn't parse as pod: items of a PodList must be a list")
    return [_static(each, source, node, now, file) for each in items]


def _document(data: bytes) -> Any:
    try:
        if not data.lstrip().startswith(b"{"):
            data, _ = yaml_to_json(data)
        return gojson.loads(data)
    except (YAMLProblem, gojson.SyntaxProblem) as error:
        raise InvalidManifest(f"couldn't parse as pod: {error}") from None


def _static(value: Any, source: str, node: str, now: str, file: bool) -> Pod:
    try:
        pod, _ = strict.convert(Pod, value)
        normalizer(Pod)(pod)
    except (strict.DecodeError, ValueError) as error:
        raise InvalidManifest(f"couldn't parse as pod: {error}") from None
    if pod.metadata is None or not pod.metadata.name:
        raise InvalidManifest("invalid pod: name is needed for the pod")
    if pod.spec is None:
        raise InvalidManifest("invalid pod: spec is needed")
    metadata, spec = pod.metadata, pod.spec
    if metadata.uid and not _UID.fullmatch(metadata.uid):  # folders are named by it
        raise InvalidManifest(f"invalid pod: uid {quote(metadata.uid)} is not the name of a folder")
    if not metadata.uid:
        # Another content is another pod: it replaces the one before.
        place = f"host:{node}file:{source}" if file else f"url:{source}"
        metadata.uid = hashlib.md5(msgspec.json.encode(pod) + place.encode(), usedforsecurity=False).hexdigest()
    metadata.name = f"{metadata.name}-{node.lower()}"
    metadata.namespace = metadata.namespace or "default"
    metadata.annotations = {
        **(metadata.annotations or {}),
        labels.CONFIG_HASH: metadata.uid,
        labels.CONFIG_SEEN: now,
        labels.CONFIG_SOURCE: "file" if file else "http",
    }
    spec.node_name = node
    if file:
        spec.tolerations = [*(spec.tolerations or ()), Toleration(operator="Exists", effect="NoExecute")]
    pod.status = PodStatus(phase="Pending")
    default_pod(pod)
    problems = validate_pod_create(pod)
    if problems:
        raise InvalidManifest(f"invalid pod: {aggregate(problems)}")
    reference = api_reference(pod)
    if reference:
        raise InvalidManifest(f"static pods may not reference {reference}")
    return pod


def api_reference(pod: Pod) -> str:
    """The API resource that a static pod refers to, which is not allowed: it has to run without an API. Empty: none."""
    spec = pod.spec or PodSpec()
    if spec.service_account_name:
        return "serviceaccounts"
    if next(iter(secret_names(pod)), None) is not None:
        return "secrets"
    if next(iter(config_map_names(pod)), None) is not None:
        return "configmaps"
    if spec.resource_claims:
        return "resourceclaims"
    for volume in spec.volumes or ():
        for name, words in (
            ("csi", "csidrivers (via CSI volumes)"),
            ("glusterfs", "endpoints (via glusterFS volumes)"),
            ("persistent_volume_claim", "persistentvolumeclaims"),
            ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
            ("azure_file", "secrets (via azureFile volumes)"),
        ):
            if getattr(volume, name, None) is not None:
                return words
        for source in (volume.projected.sources if volume.projected else None) or ():
            for name, words in (
                ("service_account_token", "serviceaccounts (via projected volumes)"),
                ("cluster_trust_bundle", "clustertrustbundles"),
                ("pod_certificate", "podcertificates"),
            ):
                if getattr(source, name, None) is not None:
                    return words
    return ""
