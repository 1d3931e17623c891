"""How ReplicationControllers are created, updated and deleted; pods outlive them unless the client says otherwise."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.disabled import drop_disabled_pod_fields
from pybernetes.api.core.v1 import PodTemplateSpec, ReplicationController, ReplicationControllerStatus
from pybernetes.apiserver.registry.strategy import Context

from ..workloads import WorkloadStrategy


class ReplicationControllerStrategy(WorkloadStrategy):
    """ReplicationControllers."""

    def new_status(self) -> ReplicationControllerStatus:
        return ReplicationControllerStatus(replicas=0)

    def prepare_for_create(self, obj: ReplicationController, context: Context) -> None:
        super().prepare_for_create(obj, context)
        template = _template(obj)
        drop_disabled_pod_fields(template.spec if template is not None else None, None)

    def prepare_for_update(self, new: ReplicationController, old: ReplicationController, context: Context) -> None:
        template, before = _template(new), _template(old)
        drop_disabled_pod_fields(
            template.spec if template is not None else None, before.spec if before is not None else None
        )
        super().prepare_for_update(new, old, context)

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        # Upstream looks at the old template here; a client is warned about what it has just replaced.
        return self.template_warnings(old, new) if new.metadata.generation != old.metadata.generation else []

    def default_propagation(self) -> str:
        return "Orphan"


def _template(obj: ReplicationController) -> PodTemplateSpec | None:
    return obj.spec.template if obj.spec is not None else None


STRATEGIES: Final = {"replicationcontrollers": ReplicationControllerStrategy}
