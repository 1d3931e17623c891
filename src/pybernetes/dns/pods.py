"""Names of pods by their address, and the search path of a pod.

`10-0-0-5.NAMESPACE.pod.ZONE` is computed from the name itself (`pods insecure`), or only if a pod of that namespace
has the address (`pods verified`). Autopath needs the namespace of the pod that asks, found by its address.
"""

from __future__ import annotations

from ipaddress import ip_address

from .message import Record, address_record

INSECURE, VERIFIED, DISABLED = "insecure", "verified", "disabled"


class PodNames:
    """The pods that this server knows: namespace by address. `set` and `remove` are called by an informer."""

    def __init__(self) -> None:
        self._namespaces: dict[str, str] = {}
        self._addresses: dict[str, tuple[str, ...]] = {}

    def set(self, key: str, namespace: str, addresses: tuple[str, ...]) -> None:
        """A pod has these addresses and no others."""
        if self._addresses.get(key) == addresses:
            return
        self.remove(key)
        self._addresses[key] = addresses
        for address in addresses:
            self._namespaces[address] = namespace

    def remove(self, key: str) -> None:
        """A pod is gone."""
        for address in self._addresses.pop(key, ()):
            self._namespaces.pop(address, None)

    def namespace(self, address: str) -> str:
        """The namespace of the pod with this address; empty if there is none."""
        return self._namespaces.get(address, "")


def pod_record(name: str, zone: str, ttl: int) -> tuple[Record, str, str] | None:
    """The address record of a pod's name, the namespace in the name, and the address; None if it is no such name."""
    if not name.endswith(f".pod.{zone}"):
        return None
    labels = name[: -len(zone) - 5].split(".")
    if len(labels) != 2:
        return None
    dashed, namespace = labels
    for separator in (".", ":"):
        try:
            address = str(ip_address(dashed.replace("-", separator)))
        except ValueError:
            continue
        return address_record(name, ttl, address), namespace, address
    return None
