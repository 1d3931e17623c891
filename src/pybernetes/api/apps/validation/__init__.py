"""Validation of objects of apps/v1: create, update, status update; one module a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError
from .controllerrevision import validate_controller_revision, validate_controller_revision_update
from .daemonset import validate_daemon_set, validate_daemon_set_status_update, validate_daemon_set_update
from .deployment import validate_deployment, validate_deployment_status_update, validate_deployment_update
from .replicaset import validate_replica_set, validate_replica_set_status_update, validate_replica_set_update
from .statefulset import validate_stateful_set, validate_stateful_set_status_update, validate_stateful_set_update

CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "ControllerRevision": validate_controller_revision,
    "DaemonSet": validate_daemon_set,
    "Deployment": validate_deployment,
    "ReplicaSet": validate_replica_set,
    "StatefulSet": validate_stateful_set,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ControllerRevision": validate_controller_revision_update,
    "DaemonSet": validate_daemon_set_update,
    "Deployment": validate_deployment_update,
    "ReplicaSet": validate_replica_set_update,
    "StatefulSet": validate_stateful_set_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "DaemonSet": validate_daemon_set_status_update,
    "Deployment": validate_deployment_status_update,
    "ReplicaSet": validate_replica_set_status_update,
    "StatefulSet": validate_stateful_set_status_update,
}
