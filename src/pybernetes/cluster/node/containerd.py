"""containerd in a node: which programs it needs, its configuration, and the network it gives to pods.

The configuration leaves everything at containerd's own places, because /run and /var/lib/containerd are the node's.
The CNI configuration is a template: containerd fills in the node's pod range when the kubelet tells it
(UpdateRuntimeConfig), so until a controller has given the node one, its network is not ready, as everywhere.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from pybernetes.cluster.images.builtin import PAUSE
from pybernetes.cluster.node.programs import find
from pybernetes.cri import capabilities

SOCKET = "/run/containerd/containerd.sock"
RUNTIMES = ("runc", "crun")
# Where Debian and others keep CNI's plugins.
PLUGINS = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
ANSWERS_WITHIN = 1.0
"""Seconds."""


def missing() -> str | None:
    """The missing requirement for nodes with containerd, None if there is none."""
    if find("containerd") is None or find("ctr") is None:
        return "containerd is not installed"
    if not runtimes():
        return "neither runc nor crun is installed"
    return None


def runs(path: str = SOCKET) -> bool:
    """Whether this machine has a containerd that answers. Nodes have one of their own, as machines do."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(ANSWERS_WITHIN)  # one that hangs takes no connection, and is none to follow
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def runtimes() -> dict[str, str]:
    """The low-level runtimes of this machine by name; the first is the default, the others are for RuntimeClasses."""
    found = {name: find(name) for name in RUNTIMES}
    return {name: path for name, path in found.items() if path is not None}


def config(template: Path | None, registries: Sequence[Path]) -> str:
    """containerd.toml."""
    found = runtimes()
    handlers = "".join(
        f"""
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}.options]
        BinaryName = {json.dumps(path)}
"""
        for name, path in found.items()
    )
    # Without the right to raise priorities against the kernel's killer even a sandbox fails, so they are limited then.
    restrict = "false" if may_lower_oom_scores() else "true"
    return f"""version = 2
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = {restrict}
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
{f"    conf_template = {json.dumps(str(template))}" if template else ""}
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = {json.dumps(":".join(str(path) for path in registries))}
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "{next(iter(found))}"
{handlers}"""


def may_lower_oom_scores() -> bool:
    """Whether this process has CAP_SYS_RESOURCE."""
    return capabilities.has("SYS_RESOURCE")


NO_NETWORK_FILE = "98-noop.conf"
NO_NETWORK = """{
  "cniVersion": "1.0.0", "name": "none", "type": "noop"
}
"""
"""`up --network none`: pods of the node's own network only."""


def network_template(mtu: int = 0, routes: Sequence[str] = ("0.0.0.0/0",)) -> str:
    """A node's CNI configuration, in containerd's template language. Leases go with a power failure, as pods do."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "addressCheck": True,
        **({"mtu": mtu} if mtu else {}),
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni/networks",
            "ranges": "RANGES",
            "routes": [{"dst": each} for each in routes],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    bandwidth = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
    text = json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap, bandwidth]}, indent=2)
    ranges = '[{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}]'
    return text.replace('"RANGES"', ranges)


def link_plugins(folder: Path) -> None:
    """Gives the node the host's CNI plugins by links; what the host has not, but we have, is ours."""
    from pybernetes.cni.command import install
    from pybernetes.cni.skel import BUILT_IN

    folder.mkdir(parents=True, exist_ok=True)
    for place in PLUGINS:
        for name in os.listdir(place) if os.path.isdir(place) else ():
            path = folder / name
            if not path.exists():
                path.unlink(missing_ok=True)  # a link to what is no longer there
                path.symlink_to(f"{place}/{name}")
    install(folder, [name for name in BUILT_IN if not (folder / name).exists() or not (folder / name).is_symlink()])
