"""Sees to it that every namespace has a ServiceAccount called `default`.

Woken by: namespaces, and deleted ServiceAccounts. Writes: ServiceAccounts.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Namespace, ServiceAccount
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import Key

from .base import Controller
from .common.meta import meta
from .common.pod_control import is_namespace_terminating

ACCOUNTS: Final = ("default",)


class ServiceAccountController(Controller[Namespace]):
    """Creates default accounts."""

    name = "serviceaccount-controller"
    kind = Namespace

    def setup(self) -> None:
        """Follow accounts that go."""
        self.accounts = self.informer(ServiceAccount)
        self.accounts.add_handler(None, None, lambda gone: self.queue.add(Key("", meta(gone).namespace or "")))

    async def reconcile(self, key: Key) -> float | None:
        """Create what is missing in a namespace that lives."""
        namespace = self.own.get(key)
        if namespace is None or namespace.status is None or namespace.status.phase != "Active":
            return None
        for name in ACCOUNTS:
            if self.accounts.named(name, key.name) is None:
                await self._create(name, key.name)
        return None

    async def _create(self, name: str, namespace: str) -> None:
        try:
            await self.client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace)))
        except errors.AlreadyExists:
            return
        except errors.Forbidden as error:
            if not is_namespace_terminating(error):
                raise
