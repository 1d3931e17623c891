"""Namespaces and service accounts."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import Namespace, ServiceAccount

from ..printer import AGE, NAME, Cells, Printer, age, name, text


def _namespace(namespace: Namespace, now: float) -> Cells:
    return [name(namespace), (namespace.status and namespace.status.phase) or "", age(namespace, now)]


def _service_account(account: ServiceAccount, now: float) -> Cells:
    return [name(account), age(account, now)]


NAMESPACE: Final = Printer((NAME, text("Status", "Whether it is in use or going away"), AGE), _namespace)
SERVICE_ACCOUNT: Final = Printer((NAME, AGE), _service_account)
