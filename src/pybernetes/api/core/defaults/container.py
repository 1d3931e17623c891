"""Defaults for a container, be it regular, init or ephemeral."""

from __future__ import annotations

from typing import Final

from ..image import default_pull_policy
from ..v1.container import Container, EphemeralContainer
from ..v1.env import EnvVar
from ..v1.probe import HTTPGetAction, Lifecycle, Probe
from .resources import default_resource_requirements
from .volume import default_object_field_selector, default_resource_field_selector

TERMINATION_LOG: Final = "/dev/termination-log"


def default_container(container: Container | EphemeralContainer) -> None:
    """Pull policy, where the last words go, and everything inside."""
    if not container.image_pull_policy:
        container.image_pull_policy = default_pull_policy(container.image)
    if not container.termination_message_path:
        container.termination_message_path = TERMINATION_LOG
    if not container.termination_message_policy:
        container.termination_message_policy = "File"
    if container.resources is not None:
        default_resource_requirements(container.resources)
    if container.ports:
        for port in container.ports:
            if not port.protocol:
                port.protocol = "TCP"
    if container.env:
        for variable in container.env:
            if variable.value_from is not None:
                _default_env_source(variable)
    if container.liveness_probe is not None:
        default_probe(container.liveness_probe)
    if container.readiness_probe is not None:
        default_probe(container.readiness_probe)
    if container.startup_probe is not None:
        default_probe(container.startup_probe)
    if container.lifecycle is not None:
        _default_lifecycle(container.lifecycle)


def default_probe(probe: Probe) -> None:
    """A probe every ten seconds that may take one, and may fail three times."""
    if not probe.timeout_seconds:
        probe.timeout_seconds = 1
    if not probe.period_seconds:
        probe.period_seconds = 10
    if not probe.success_threshold:
        probe.success_threshold = 1
    if not probe.failure_threshold:
        probe.failure_threshold = 3
    if probe.http_get is not None:
        _default_http_get(probe.http_get)
    elif probe.grpc is not None and probe.grpc.service is None:
        probe.grpc.service = ""


def _default_http_get(action: HTTPGetAction) -> None:
    if not action.path:
        action.path = "/"
    if not action.scheme:
        action.scheme = "HTTP"


def _default_lifecycle(lifecycle: Lifecycle) -> None:
    for handler in (lifecycle.post_start, lifecycle.pre_stop):
        if handler is not None and handler.http_get is not None:
            _default_http_get(handler.http_get)


def _default_env_source(variable: EnvVar) -> None:
    source = variable.value_from
    if source is None:
        return
    if source.field_ref is not None:
        default_object_field_selector(source.field_ref)
    if source.resource_field_ref is not None:
        default_resource_field_selector(source.resource_field_ref)
    if source.file_key_ref is not None and source.file_key_ref.optional is None:
        source.file_key_ref.optional = False
