"""Printers of the core group."""

from __future__ import annotations

from typing import Final

from ..printer import Printer
from .componentstatus import COMPONENT_STATUS
from .configuration import CONFIG_MAP, SECRET
from .event import EVENT
from .namespace import NAMESPACE, SERVICE_ACCOUNT
from .node import NODE
from .persistentvolume import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from .pod import POD
from .replicationcontroller import POD_TEMPLATE, REPLICATION_CONTROLLER
from .resourcequota import RESOURCE_QUOTA
from .service import ENDPOINTS, SERVICE

PRINTERS: Final[dict[str, Printer]] = {
    "ComponentStatus": COMPONENT_STATUS,
    "ConfigMap": CONFIG_MAP,
    "Endpoints": ENDPOINTS,
    "Event": EVENT,
    "Namespace": NAMESPACE,
    "Node": NODE,
    "PersistentVolume": PERSISTENT_VOLUME,
    "PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIM,
    "Pod": POD,
    "PodTemplate": POD_TEMPLATE,
    "ReplicationController": REPLICATION_CONTROLLER,
    "ResourceQuota": RESOURCE_QUOTA,
    "Secret": SECRET,
    "Service": SERVICE,
    "ServiceAccount": SERVICE_ACCOUNT,
}
