"""Defaults for a ReplicationController."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...meta.v1.objectmeta import ObjectMeta
from ..v1.replicationcontroller import ReplicationController, ReplicationControllerSpec
from .pod import default_pod_template_spec


def default_replication_controller(obj: ReplicationController) -> None:
    """One replica; labels and selector are the template's if the author gave none."""
    if obj.metadata is None:
        obj.metadata = ObjectMeta()
    spec = obj.spec
    if spec is None:
        spec = obj.spec = ReplicationControllerSpec()
    if spec.template is not None:
        default_pod_template_spec(spec.template)
        labels = spec.template.metadata.labels if spec.template.metadata is not None else None
        if labels:
            if not spec.selector:
                spec.selector = dict(labels)
            if not obj.metadata.labels:
                obj.metadata.labels = dict(labels)
    if spec.replicas is None:
        spec.replicas = 1


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"ReplicationController": default_replication_controller}
