"""Which module of `defaults` and `validation` knows about which kind."""

from __future__ import annotations

from typing import Final

MODULES: Final = {
    "Pod": "pod",
    "PodTemplate": "podtemplate",
    "ReplicationController": "replicationcontroller",
    "Binding": "pod",
    "Service": "service",
    "Endpoints": "endpoints",
    "PersistentVolume": "persistentvolume",
    "PersistentVolumeClaim": "persistentvolumeclaim",
    "Node": "node",
    "Namespace": "namespace",
    "ResourceQuota": "quota",
    "LimitRange": "quota",
    "Event": "event",
    "ConfigMap": "config",
    "Secret": "config",
    "ServiceAccount": "config",
}
