"""What is filled in for a container, be it regular, init or ephemeral."""

from __future__ import annotations

from typing import Final

from ..image import default_pull_policy
from ..v1.compute import ResourceRequirements
from ..v1.container import Container, EphemeralContainer
from ..v1.env import EnvVar
from ..v1.probe import HTTPGetAction, Lifecycle, LifecycleHandler, Probe
from .empty import CAPABILITIES, CONTAINER, MOUNT, PORT, RESOURCES, drop_empty
from .resources import default_resource_requirements
from .volume import default_object_field_selector, default_resource_field_selector

TERMINATION_LOG: Final = "/dev/termination-log"


def default_container(container: Container | EphemeralContainer) -> None:
    """Pull policy, where the last words go, and everything inside."""
    drop_empty(container, CONTAINER)
    if not container.image_pull_policy:
        container.image_pull_policy = default_pull_policy(container.image)
    if not container.termination_message_path:
        container.termination_message_path = TERMINATION_LOG
    if not container.termination_message_policy:
        container.termination_message_policy = "File"
    if container.resources is None:
        container.resources = ResourceRequirements()
    else:
        drop_empty(container.resources, RESOURCES)
        default_resource_requirements(container.resources)
    if container.ports:
        for port in container.ports:
            drop_empty(port, PORT)
            if not port.protocol:
                port.protocol = "TCP"
    if container.env:
        for variable in container.env:
            if not variable.value:
                variable.value = None
            if variable.value_from is not None:
                _default_env_source(variable)
    if container.volume_mounts:
        for mount in container.volume_mounts:
            drop_empty(mount, MOUNT)
    context = container.security_context
    if context is not None and context.capabilities is not None:
        drop_empty(context.capabilities, CAPABILITIES)
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
    if not probe.initial_delay_seconds:
        probe.initial_delay_seconds = None
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
    elif probe.tcp_socket is not None:
        if probe.tcp_socket.port is None:
            probe.tcp_socket.port = 0
    elif probe.grpc is not None and probe.grpc.service is None:
        probe.grpc.service = ""


def _default_http_get(action: HTTPGetAction) -> None:
    if not action.path:
        action.path = "/"
    if not action.scheme:
        action.scheme = "HTTP"
    for header in action.http_headers or ():
        if header.value is None:
            header.value = ""


def _default_lifecycle(lifecycle: Lifecycle) -> None:
    for handler in (lifecycle.post_start, lifecycle.pre_stop):
        if handler is not None:
            _default_handler(handler)


def _default_handler(handler: LifecycleHandler) -> None:
    if handler.http_get is not None:
        _default_http_get(handler.http_get)
    if handler.sleep is not None and handler.sleep.seconds is None:
        handler.sleep.seconds = 0


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
