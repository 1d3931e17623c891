"""Defaults for a PodTemplate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.pod import PodTemplate, PodTemplateSpec
from .pod import default_pod_template_spec


def default_pod_template(obj: PodTemplate) -> None:
    """The template inside."""
    if obj.template is None:
        obj.template = PodTemplateSpec()
    default_pod_template_spec(obj.template)


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"PodTemplate": default_pod_template}
