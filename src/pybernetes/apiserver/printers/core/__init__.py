"""Printers of the core group."""

from __future__ import annotations

from typing import Final

from ..printer import Printer
from .namespace import NAMESPACE, SERVICE_ACCOUNT
from .node import NODE
from .pod import POD
from .service import ENDPOINTS, SERVICE

PRINTERS: Final[dict[str, Printer]] = {
    "Endpoints": ENDPOINTS,
    "Namespace": NAMESPACE,
    "Node": NODE,
    "Pod": POD,
    "Service": SERVICE,
    "ServiceAccount": SERVICE_ACCOUNT,
}
