"""How ReplicationControllers are created, updated and deleted; pods outlive them unless the client says otherwise."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.v1 import PodTemplateSpec, ReplicationController, ReplicationControllerStatus
from pybernetes.apiserver.registry.strategy import Context

from ..workloads import WorkloadStrategy


class ReplicationControllerStrategy(WorkloadStrategy):
    """ReplicationControllers."""

    def new_status(self) -> ReplicationControllerStatus:
        return ReplicationControllerStatus(replicas=0)

    def template(self, obj: ReplicationController) -> PodTemplateSpec:
        found = obj.spec.template if obj.spec is not None else None
        return found or PodTemplateSpec()  # validation says that it is missing

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        # Upstream looks at the old template here; a client is warned about what it has just replaced.
        return self.template_warnings(old, new) if new.metadata.generation != old.metadata.generation else []

    def default_propagation(self) -> str:
        return "Orphan"


STRATEGIES: Final = {"replicationcontrollers": ReplicationControllerStrategy}
