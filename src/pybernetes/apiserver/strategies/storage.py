"""How the kinds of storage/v1 are created, updated and deleted."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.nodelabels import DEPRECATED, selector_warnings
from pybernetes.api.field import Path
from pybernetes.api.storage.v1 import (
    CSIDriver,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentStatus,
)
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .metadata import keep_metadata

_TOKENS_BELONG_IN_SECRETS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
    "set to true to prevent possible logging of tokens in volume attributes"
)


class StorageClassStrategy(Strategy):
    """StorageClasses."""

    returns_deleted = True

    def warnings_on_create(self, obj: StorageClass, context: Context) -> list[str]:
        warnings: list[str] = []
        path = Path("allowedTopologies")
        for index, term in enumerate(obj.allowed_topologies or ()):
            for number, expression in enumerate(term.match_label_expressions or ()):
                if text := DEPRECATED.get(expression.key or ""):
                    at = path.index(index).child("matchLabelExpressions").index(number).child("key")
                    warnings.append(f"{at}: {text}")
        return warnings


class VolumeAttributesClassStrategy(Strategy):
    """VolumeAttributesClasses."""

    returns_deleted = True


class CSIDriverStrategy(Strategy):
    """CSIDrivers: the first change of one is its generation 1."""

    returns_deleted = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: CSIDriver, context: Context) -> None:
        _drop_disabled(obj, None)

    def prepare_for_update(self, new: CSIDriver, old: CSIDriver, context: Context) -> None:
        _drop_disabled(new, old)
        if self.changed(new, old):
            assert new.metadata is not None
            assert old.metadata is not None
            new.metadata.generation = (old.metadata.generation or 0) + 1

    def warnings_on_create(self, obj: CSIDriver, context: Context) -> list[str]:
        spec = obj.spec
        leaky = spec and spec.token_requests and spec.service_account_token_in_secrets is None
        return [_TOKENS_BELONG_IN_SECRETS] if leaky else []

    def warnings_on_update(self, new: CSIDriver, old: CSIDriver, context: Context) -> list[str]:
        same = new.spec and old.spec and (new.spec.token_requests or []) == (old.spec.token_requests or [])
        return [] if same else self.warnings_on_create(new, context)


class CSINodeStrategy(Strategy):
    """CSINodes."""

    returns_deleted = True
    allow_unconditional_update = False


class CSIStorageCapacityStrategy(Strategy):
    """CSIStorageCapacities."""

    allow_unconditional_update = False

    def warnings_on_create(self, obj: CSIStorageCapacity, context: Context) -> list[str]:
        return selector_warnings(obj.node_topology, Path("nodeTopology"))


class VolumeAttachmentStrategy(Strategy):
    """VolumeAttachments."""

    returns_deleted = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: VolumeAttachment, context: Context) -> None:
        obj.status = VolumeAttachmentStatus(attached=False)

    def prepare_for_status_update(self, new: VolumeAttachment, old: VolumeAttachment, context: Context) -> None:
        new.spec = old.spec
        keep_metadata(new, old)


def _drop_disabled(new: CSIDriver, old: CSIDriver | None) -> None:
    """A feature that is off: the scheduler waiting for a driver. Who has it already keeps it."""
    before = old.spec if old else None
    if new.spec and (before is None or before.prevent_pod_scheduling_if_missing is None):
        new.spec.prevent_pod_scheduling_if_missing = None


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "csidrivers": CSIDriverStrategy,
    "csinodes": CSINodeStrategy,
    "csistoragecapacities": CSIStorageCapacityStrategy,
    "storageclasses": StorageClassStrategy,
    "volumeattachments": VolumeAttachmentStrategy,
    "volumeattributesclasses": VolumeAttributesClassStrategy,
}
