"""Signs `cluster-info` in `kube-public` with every bootstrap token, so that a node that has one can trust it.

Woken by: that ConfigMap, and the tokens. Writes: `jws-kubeconfig-<token id>` in the ConfigMap.
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap, Secret
from pybernetes.client.keys import Key, copy
from pybernetes.jws import detached_signature

from ..base import Controller
from .tokens import SECRET_TYPE, Token, signing_token

KEY: Final = Key("kube-public", "cluster-info")
PREFIX: Final = "jws-kubeconfig-"


class BootstrapSignerController(Controller[Any]):
    """Signs cluster-info."""

    name = "bootstrap-signer-controller"

    def setup(self) -> None:
        """One key stands for everything."""
        self.config_maps = self.informer(ConfigMap, namespace=KEY.namespace, field_selector=f"metadata.name={KEY.name}")
        self.secrets = self.informer(Secret, namespace="kube-system", field_selector=f"type={SECRET_TYPE}")
        for informer in (self.config_maps, self.secrets):
            informer.add_handler(self._wake, lambda _, new: self._wake(new), self._wake)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "bootstrap_signer_queue"

    def _wake(self, _: Any) -> None:
        self.queue.add(KEY)

    async def reconcile(self, key: Key) -> float | None:
        """Write the signatures if they are not right."""
        current = self.config_maps.get(key)
        if current is None:
            return None
        now = self.clock.now()
        tokens = {token.id: token for token in (signing_token(each, now) for each in self.secrets.items()) if token}
        data = signed(current.data or {}, list(tokens.values()))
        if data is None or data == current.data:
            return None
        changed = copy(current)
        changed.data = data
        try:
            await self.client.update(changed)
        except (errors.Conflict, errors.NotFound):
            return None  # whatever changed wakes us
        return None


def signed(data: dict[str, str], tokens: list[Token]) -> dict[str, str] | None:
    """The ConfigMap's data with the signatures of these tokens and no others; None if there is nothing to sign."""
    content = data.get("kubeconfig")
    if content is None:
        return None
    rest = {key: value for key, value in data.items() if not key.startswith(PREFIX)}
    return {**rest, **{f"{PREFIX}{each.id}": detached_signature(content, each.id, each.secret) for each in tokens}}
