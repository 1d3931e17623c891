"""How workloads of apps/v1 are created, updated and deleted.

Every change of a spec is a new generation; a Deployment counts its annotations too, because it copies them to its
ReplicaSets. A DaemonSet keeps the number of its template in an annotation, for controllers older than revisions.
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.apps.defaults import set_template_generation, template_generation
from pybernetes.api.apps.v1 import (
    DaemonSet,
    DaemonSetStatus,
    Deployment,
    DeploymentStatus,
    ReplicaSetStatus,
    StatefulSet,
    StatefulSetStatus,
)
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaimSpec
from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import Path
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .core.persistentvolumeclaim import claim_spec_warnings
from .workloads import WorkloadStrategy

_KEEPS_ALL_REVISIONS = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)


class DeploymentStrategy(WorkloadStrategy):
    """Deployments."""

    def new_status(self) -> DeploymentStatus:
        return DeploymentStatus()

    def changed(self, new: Deployment, old: Deployment) -> bool:
        return super().changed(new, old) or not semantically_equal(_annotations(new), _annotations(old))

    def prepare_for_status_update(self, new: Any, old: Any, context: Context) -> None:
        super().prepare_for_status_update(new, old, context)
        new.metadata.labels = old.metadata.labels


class ReplicaSetStrategy(WorkloadStrategy):
    """ReplicaSets."""

    def new_status(self) -> ReplicaSetStatus:
        return ReplicaSetStatus(replicas=0)


class StatefulSetStrategy(WorkloadStrategy):
    """StatefulSets."""

    warns_about_names = False

    def new_status(self) -> StatefulSetStatus:
        return StatefulSetStatus(replicas=0, available_replicas=0)

    def prepare_for_create(self, obj: StatefulSet, context: Context) -> None:
        super().prepare_for_create(obj, context)
        _drop_max_unavailable(obj, None)

    def prepare_for_update(self, new: StatefulSet, old: StatefulSet, context: Context) -> None:
        _drop_max_unavailable(new, old)
        super().prepare_for_update(new, old, context)

    def warnings_on_create(self, obj: StatefulSet, context: Context) -> list[str]:
        warnings = super().warnings_on_create(obj, context) + _claim_warnings(obj)
        return warnings + _revision_warnings(obj)

    def warnings_on_update(self, new: StatefulSet, old: StatefulSet, context: Context) -> list[str]:
        # Upstream writes this part of the path as Go does, but only here.
        warnings = super().warnings_on_update(new, old, context) + _claim_warnings(new, "Spec")
        return warnings + _revision_warnings(new)


class DaemonSetStrategy(WorkloadStrategy):
    """DaemonSets."""

    warns_about_names = False

    def new_status(self) -> DaemonSetStatus:
        return DaemonSetStatus(
            current_number_scheduled=0, number_misscheduled=0, desired_number_scheduled=0, number_ready=0
        )

    def prepare_for_create(self, obj: DaemonSet, context: Context) -> None:
        super().prepare_for_create(obj, context)
        set_template_generation(obj, max(1, template_generation(obj.metadata)))

    def prepare_for_update(self, new: DaemonSet, old: DaemonSet, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        number = template_generation(old.metadata)
        set_template_generation(new, number + 1 if _template_changed(new, old) else number)

    def prepare_for_status_update(self, new: DaemonSet, old: DaemonSet, context: Context) -> None:
        super().prepare_for_status_update(new, old, context)
        set_template_generation(new, template_generation(old.metadata))

    def warnings_on_update(self, new: DaemonSet, old: DaemonSet, context: Context) -> list[str]:
        return self.template_warnings(new, old) if _template_changed(new, old) else []


class ControllerRevisionStrategy(Strategy):
    """ControllerRevisions."""


def _annotations(deployment: Deployment) -> dict[str, str] | None:
    return deployment.metadata.annotations if deployment.metadata else None


def _drop_max_unavailable(new: StatefulSet, old: StatefulSet | None) -> None:
    """`maxUnavailable` of a StatefulSet is behind a feature gate that is off; who has it already keeps it."""
    update = new.spec.update_strategy.rolling_update if new.spec and new.spec.update_strategy else None
    if update is None or update.max_unavailable is None:
        return
    before = old.spec.update_strategy if old and old.spec else None
    if before is None or before.rolling_update is None or before.rolling_update.max_unavailable is None:
        update.max_unavailable = None


def _claim_warnings(stateful_set: StatefulSet, *inside: str) -> list[str]:
    warnings: list[str] = []
    claims = stateful_set.spec.volume_claim_templates if stateful_set.spec else None
    for index, claim in enumerate(claims or ()):
        path = Path("spec", "volumeClaimTemplates").index(index)
        path = path.child(*inside) if inside else path
        warnings += claim_spec_warnings(claim.spec or PersistentVolumeClaimSpec(), path)
    return warnings


def _revision_warnings(stateful_set: StatefulSet) -> list[str]:
    limit = stateful_set.spec.revision_history_limit if stateful_set.spec else None
    return [_KEEPS_ALL_REVISIONS] if limit is not None and limit < 0 else []


def _template_changed(new: DaemonSet, old: DaemonSet) -> bool:
    return not semantically_equal(new.spec and new.spec.template, old.spec and old.spec.template)


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "controllerrevisions": ControllerRevisionStrategy,
    "daemonsets": DaemonSetStrategy,
    "deployments": DeploymentStrategy,
    "replicasets": ReplicaSetStrategy,
    "statefulsets": StatefulSetStrategy,
}
