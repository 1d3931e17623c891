"""How the core group's resources differ; one module a subject, loaded when needed."""

from __future__ import annotations

from typing import Final

from pybernetes.api.kindtable import KindTable

# A resource that is not here has nothing special about it.
_MODULES: Final = {
    "pods": "pod",
    "podtemplates": "podtemplate",
    "replicationcontrollers": "replicationcontroller",
    "services": "service",
    "endpoints": "endpoints",
    "persistentvolumes": "persistentvolume",
    "persistentvolumeclaims": "persistentvolumeclaim",
    "nodes": "node",
    "namespaces": "namespace",
    "resourcequotas": "quota",
    "limitranges": "quota",
    "events": "event",
    "configmaps": "config",
    "secrets": "config",
    "serviceaccounts": "config",
}

STRATEGIES: Final = KindTable(__name__, "STRATEGIES", _MODULES)
