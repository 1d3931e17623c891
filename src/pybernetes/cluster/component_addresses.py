"""Where the components of a cluster of this machine listen, by the flags that they were started with."""

from __future__ import annotations

import json

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, clusters

PORTS = {"scheduler": 10259, "controller-manager": 10257}


def address_of(layout: Layout, component: str) -> str:
    """The URL of a component. ClusterError if the cluster runs none."""
    try:
        found = json.loads(layout.components_file.read_bytes())
    except FileNotFoundError:
        return f"https://127.0.0.1:{PORTS[component]}"
    for each in found:
        if each["name"] == component:
            given = dict(word[2:].partition("=")[::2] for word in each["argv"] if word.startswith("--"))
            host = given.get("bind-address", "127.0.0.1").replace("0.0.0.0", "127.0.0.1")
            return f"https://{host}:{given.get('secure-port', PORTS[component])}"
    raise ClusterError(f"cluster {layout.name!r} runs no {component}")


def layout_of(server: str) -> Layout | None:
    """The cluster of this machine whose API server has a URL."""
    for each in clusters():
        record = each.read_record()
        if record is not None and record.server == server:
            return each
    return None
