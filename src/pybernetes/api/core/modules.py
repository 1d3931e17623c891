"""Which module of `defaults` and `validation` knows about which kind."""

from __future__ import annotations

from typing import Final

MODULES: Final = {
    "Pod": "pod",
    "PodTemplate": "podtemplate",
    "ReplicationController": "replicationcontroller",
    "Binding": "pod",
    "Service": "service",
    "Endpoints": "service",
    "PersistentVolume": "storage",
    "PersistentVolumeClaim": "storage",
    "Node": "cluster",
    "Namespace": "cluster",
    "ResourceQuota": "cluster",
    "LimitRange": "cluster",
    "Event": "cluster",
    "ConfigMap": "config",
    "Secret": "config",
    "ServiceAccount": "config",
}
