"""Nodes: a client may register one with its status; the kubelet's configuration in ConfigMaps is gone."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.addresses import warnings_for_cidr
from pybernetes.api.core.v1.node import NodeSpec
from pybernetes.api.field import Path
from pybernetes.apiserver.registry.strategy import Context, Strategy


class NodeStrategy(Strategy):
    """A new Node keeps its status: the kubelet registers with what it knows about itself."""

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        if obj.spec is not None:
            obj.spec.config_source = None
        if obj.status is not None:
            obj.status.config = None

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        new.status = old.status
        if new.spec is not None and not (old.spec and old.spec.config_source):
            new.spec.config_source = None

    def prepare_for_status_update(self, new: Any, old: Any, context: Context) -> None:
        new.spec = old.spec
        if new.status is not None and not (old.status and old.status.config):
            new.status.config = None

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        spec = obj.spec or NodeSpec()
        warnings: list[str] = []
        if spec.config_source is not None:
            warnings.append("spec.configSource: the feature is removed")
        if spec.external_id:
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for index, cidr in enumerate(spec.pod_cidrs or ()):
            warnings += warnings_for_cidr(Path("spec", "podCIDRs").index(index), cidr)
        return warnings


STRATEGIES: Final[dict[str, type[Strategy]]] = {"nodes": NodeStrategy}
