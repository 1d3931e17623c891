"""Deletes bootstrap tokens that have expired.

Woken by: bootstrap tokens in `kube-system`, and their time. Writes: deletes them.
"""

from __future__ import annotations

from typing import Any

from pybernetes.api import errors
from pybernetes.api.core.v1 import Secret
from pybernetes.client.keys import Key, key_of, uid_of

from ..base import Controller
from .tokens import SECRET_TYPE, expiration


class TokenCleanerController(Controller[Any]):
    """Cleans tokens."""

    name = "token-cleaner-controller"

    def setup(self) -> None:
        """Only these Secrets are of interest."""
        self.secrets = self.informer(Secret, namespace="kube-system", field_selector=f"type={SECRET_TYPE}")
        self.secrets.add_handler(lambda each: self.queue.add(key_of(each)), lambda _, new: self.queue.add(key_of(new)))

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "token_cleaner"

    async def reconcile(self, key: Key) -> float | None:
        """Delete a token whose time is over; otherwise come back when it is."""
        secret = self.secrets.get(key)
        if secret is None:
            return None
        ends = expiration(secret)
        if ends is None:
            return None
        wait = ends - self.clock.now()
        if wait > 0:
            return wait
        try:
            await self.client.delete(Secret, key.name, key.namespace, uid=uid_of(secret))
        except (errors.Conflict, errors.NotFound):
            return None
        return None
