"""Keeps as many pods alive as a ReplicationController asks for: the ReplicaSet's loop for its predecessor."""

from __future__ import annotations

from pybernetes.api.core.v1.replicationcontroller import ReplicationController

from .common.pod_control import PodControl
from .replicaset import ReplicaController


class ReplicationControllerController(ReplicaController[ReplicationController]):
    """Keeps as many pods alive as a ReplicationController asks for."""

    name = "replicationcontroller-controller"
    kind = ReplicationController

    def setup(self) -> None:
        super().setup()
        self.workers = self.options.concurrent_rc_syncs
        self.recorder = self.context.events.recorder("replication-controller")  # upstream's name in events
        self.pod_control = PodControl(self.client, self.recorder)

    def queue_name(self) -> str:
        return "replicationmanager"
