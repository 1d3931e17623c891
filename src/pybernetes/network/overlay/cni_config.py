"""The pods' network of a node as a CNI configuration: written by the agent on machines where no runtime fills it in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from pybernetes.cni.fields import Network


def render(ranges: Iterable[Network], mtu: int) -> str:
    """A bridge with the node's ranges and the MTU of the overlay."""
    listed = list(ranges)
    everything = {4: "0.0.0.0/0", 6: "::/0"}
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "addressCheck": True,
        "mtu": mtu,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni/networks",
            "ranges": [[{"subnet": str(each)}] for each in listed],
            "routes": [{"dst": everything[each.version]} for each in listed],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    bandwidth = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap, bandwidth]}, indent=2) + "\n"


def write(path: str, ranges: Iterable[Network], mtu: int) -> bool:
    """Writes the file if it is not so already; runtimes watch its folder, so it gets its name when it is complete."""
    text = render(ranges, mtu)
    try:
        with open(path) as file:
            if file.read() == text:
                return False
    except OSError:
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fresh = f"{os.path.dirname(path)}/.{os.path.basename(path)}.new"
    with open(fresh, "w") as file:
        file.write(text)
    os.rename(fresh, path)
    return True
