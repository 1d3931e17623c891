"""Defaults for the kinds of apps/v1.

Two annotations stand for fields that older versions of these kinds had; what cannot be such a field is refused here, as
upstream refuses it while decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ..core.defaults import DEFAULTS as CORE
from ..core.defaults.pod import default_pod_template_spec
from ..core.v1.pod import PodTemplateSpec
from ..errors import BadRequest
from ..gocompat.quote import quote
from ..intstr import or_zero
from ..meta.v1.objectmeta import ObjectMeta
from .v1 import (
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDaemonSet,
    RollingUpdateDeployment,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)

REVISION_HISTORY_LIMIT: Final = 10
PROGRESS_DEADLINE_SECONDS: Final = 600
ROLLING_UPDATE: Final = "RollingUpdate"
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"

_is_integer = re.compile("[+-]?[0-9]+", re.ASCII).fullmatch


def default_deployment(deployment: Deployment) -> None:
    """One replica, replaced a quarter at a time, within ten minutes."""
    spec = deployment.spec
    if spec is None:
        spec = deployment.spec = DeploymentSpec()
    _read_rollback(deployment.metadata)
    if spec.template is None:
        spec.template = PodTemplateSpec()
    default_pod_template_spec(spec.template)
    if spec.replicas is None:
        spec.replicas = 1
    strategy = spec.strategy
    if strategy is None:
        strategy = spec.strategy = DeploymentStrategy()
    if not strategy.type:
        strategy.type = ROLLING_UPDATE
    if strategy.type == ROLLING_UPDATE:
        update = strategy.rolling_update
        if update is None:
            update = strategy.rolling_update = RollingUpdateDeployment()
        if update.max_unavailable is None:
            update.max_unavailable = "25%"
        if update.max_surge is None:
            update.max_surge = "25%"
    if spec.revision_history_limit is None:
        spec.revision_history_limit = REVISION_HISTORY_LIMIT
    if spec.progress_deadline_seconds is None:
        spec.progress_deadline_seconds = PROGRESS_DEADLINE_SECONDS


def default_replica_set(replica_set: ReplicaSet) -> None:
    """One replica."""
    spec = replica_set.spec
    if spec is None:
        spec = replica_set.spec = ReplicaSetSpec()
    if spec.template is None:
        spec.template = PodTemplateSpec()
    default_pod_template_spec(spec.template)
    if spec.replicas is None:
        spec.replicas = 1


def default_stateful_set(stateful_set: StatefulSet) -> None:
    """One replica after another, updated from the last to the first; claims outlive their pods."""
    spec = stateful_set.spec
    if spec is None:
        spec = stateful_set.spec = StatefulSetSpec()
    if spec.template is None:
        spec.template = PodTemplateSpec()
    default_pod_template_spec(spec.template)
    for claim in spec.volume_claim_templates or ():
        # Upstream writes these two into every template, whatever the client sent.
        claim.kind = "PersistentVolumeClaim"
        claim.api_version = "v1"
        CORE["PersistentVolumeClaim"](claim)
    if not spec.pod_management_policy:
        spec.pod_management_policy = "OrderedReady"
    strategy = spec.update_strategy
    if strategy is None:
        strategy = spec.update_strategy = StatefulSetUpdateStrategy()
    if not strategy.type:
        strategy.type = ROLLING_UPDATE
        if strategy.rolling_update is None:
            strategy.rolling_update = RollingUpdateStatefulSetStrategy()
    update = strategy.rolling_update
    if strategy.type == ROLLING_UPDATE and update is not None and update.partition is None:
        update.partition = 0
    retention = spec.persistent_volume_claim_retention_policy
    if retention is None:
        retention = StatefulSetPersistentVolumeClaimRetentionPolicy()
        spec.persistent_volume_claim_retention_policy = retention
    if not retention.when_deleted:
        retention.when_deleted = "Retain"
    if not retention.when_scaled:
        retention.when_scaled = "Retain"
    if spec.replicas is None:
        spec.replicas = 1
    if spec.revision_history_limit is None:
        spec.revision_history_limit = REVISION_HISTORY_LIMIT
    if spec.ordinals is not None and spec.ordinals.start is None:
        spec.ordinals.start = 0


def default_daemon_set(daemon_set: DaemonSet) -> None:
    """Updated one node after another."""
    # A field of older versions that is always set, so every writer of a DaemonSet writes it, too.
    set_template_generation(daemon_set, template_generation(daemon_set.metadata))
    spec = daemon_set.spec
    if spec is None:
        spec = daemon_set.spec = DaemonSetSpec()
    if spec.template is None:
        spec.template = PodTemplateSpec()
    default_pod_template_spec(spec.template)
    strategy = spec.update_strategy
    if strategy is None:
        strategy = spec.update_strategy = DaemonSetUpdateStrategy()
    if not strategy.type:
        strategy.type = ROLLING_UPDATE
    if strategy.type == ROLLING_UPDATE:
        update = strategy.rolling_update
        if update is None:
            update = strategy.rolling_update = RollingUpdateDaemonSet()
        if update.max_unavailable is None:
            update.max_unavailable = 1
        if update.max_surge is None:
            update.max_surge = 0
    elif strategy.rolling_update is not None:
        # No strategy's parameters; upstream writes both when there is one.
        strategy.rolling_update.max_unavailable = or_zero(strategy.rolling_update.max_unavailable)
        strategy.rolling_update.max_surge = or_zero(strategy.rolling_update.max_surge)
    if spec.revision_history_limit is None:
        spec.revision_history_limit = REVISION_HISTORY_LIMIT


def template_generation(meta: ObjectMeta | None) -> int:
    """The number of a DaemonSet's template, 0 if it has none yet."""
    annotations = meta.annotations if meta else None
    text = annotations.get(TEMPLATE_GENERATION) if annotations else None
    if text is None:
        return 0
    try:
        return _int64(text)
    except ValueError as error:
        raise BadRequest(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}') from None


def set_template_generation(daemon_set: DaemonSet, number: int) -> None:
    """Write down the number of a DaemonSet's template."""
    meta = daemon_set.metadata
    if meta is None:
        meta = daemon_set.metadata = ObjectMeta()
    meta.annotations = {**(meta.annotations or {}), TEMPLATE_GENERATION: str(number)}


def _read_rollback(meta: ObjectMeta | None) -> None:
    annotations = meta.annotations if meta else None
    if not annotations or ROLLBACK_TO not in annotations:
        return
    text = annotations.pop(ROLLBACK_TO)
    if not text:
        return
    try:
        annotations[ROLLBACK_TO] = str(_int64(text))
    except ValueError as error:
        why = f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}"
        raise BadRequest(f'Deployment in version "v1" cannot be handled as a Deployment: {why}') from None


def _int64(text: str) -> int:
    if len(text) > 64 or not _is_integer(text):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "DaemonSet": default_daemon_set,
    "Deployment": default_deployment,
    "ReplicaSet": default_replica_set,
    "StatefulSet": default_stateful_set,
}
