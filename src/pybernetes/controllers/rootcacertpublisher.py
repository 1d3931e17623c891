"""Puts the CA of the API server into every namespace, as ConfigMap `kube-root-ca.crt`, for the pods in it.

Woken by: namespaces, and these ConfigMaps when they are changed or deleted. Writes: these ConfigMaps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap, Namespace
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import Key, copy, key_of

from .base import Controller
from .common.meta import annotations_of, is_deleting, meta
from .common.pod_control import is_namespace_terminating

NAME: Final = "kube-root-ca.crt"
DESCRIPTION: Final = "kubernetes.io/description"
TEXT: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class RootCACertificatePublisherController(Controller[Namespace]):
    """Publishes the CA."""

    name = "root-ca-certificate-publisher-controller"
    kind = Namespace

    def setup(self) -> None:
        """Read the CA: the one of the flag, or the one by which we trust the server ourselves."""
        path = self.options.root_ca_file
        self.authority = Path(path).read_text() if path else self.client.transport.config.ca_data.decode()
        # Only ours: other people's ConfigMaps are large and many.
        self.config_maps = self.informer(ConfigMap, field_selector=f"metadata.name={NAME}")
        self.config_maps.add_handler(None, lambda _, new: self._wake(new), self._wake)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "root_ca_cert_publisher"

    def _wake(self, found: ConfigMap) -> None:
        self.queue.add(Key("", key_of(found).namespace))

    async def reconcile(self, key: Key) -> float | None:
        """Write the ConfigMap of a namespace if it is not right."""
        namespace = self.own.get(key)
        if namespace is None or is_deleting(namespace) or not self.authority:
            return None
        current = self.config_maps.named(NAME, key.name)
        data = {"ca.crt": self.authority}
        if current is None:
            await self._create(key.name, data)
        elif current.data != data or not annotations_of(current).get(DESCRIPTION):
            changed = copy(current)
            changed.data = data
            meta(changed).annotations = {**annotations_of(current), DESCRIPTION: TEXT}
            await self.client.update(changed)
        return None

    async def _create(self, namespace: str, data: dict[str, str]) -> None:
        metadata = ObjectMeta(name=NAME, namespace=namespace, annotations={DESCRIPTION: TEXT})
        try:
            await self.client.create(ConfigMap(metadata=metadata, data=data))
        except errors.NotFound:
            return
        except errors.Forbidden as error:
            if not is_namespace_terminating(error):
                raise
