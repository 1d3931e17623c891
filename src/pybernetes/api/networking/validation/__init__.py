"""Validation of networking.k8s.io; one module a subject, loaded when needed."""

from __future__ import annotations

from typing import Final

from ...kindtable import KindTable

_MODULES: Final = {
    "Ingress": "ingress",
    "IngressClass": "ingressclass",
    "IPAddress": "addresses",
    "NetworkPolicy": "networkpolicy",
    "ServiceCIDR": "addresses",
}

CREATE: Final = KindTable(__name__, "CREATE", _MODULES)
UPDATE: Final = KindTable(__name__, "UPDATE", _MODULES)
STATUS_UPDATE: Final = KindTable(__name__, "STATUS_UPDATE", _MODULES)
