"""A machine for tests (see machine.py) with containerd: Debian's programs, and two OCI runtimes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from node.machine import Machine

from pybernetes.cluster.images import builtin, oci

CONFIG = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "{folder}/containerd.sock"
[ttrpc]
  address = "{folder}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{folder}/cni"
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{folder}/certs.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "/usr/sbin/runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]
        BinaryName = "/usr/bin/crun"
"""


class ContainerdMachine(Machine):
    """Namespaces with a containerd in them."""

    PROGRAMS = (*Machine.PROGRAMS, "containerd", "ctr", "runc")

    def __init__(self, folder: Path, name: str, *, cni: Path = Path("/usr/lib/cni")) -> None:
        super().__init__(folder, name)
        self.cni = cni
        self.socket = folder / "containerd.sock"

    def command(self) -> list[str]:
        """containerd, with a configuration of its own."""
        path = self.folder / "containerd.toml"
        path.write_text(CONFIG.format(folder=self.folder, pause=builtin.PAUSE, cni=self.cni))
        return ["containerd", "--config", str(path)]

    def import_image(self, image: oci.Image) -> None:
        """Puts an image into containerd."""
        archive = self.folder / "image.tar"
        oci.write(archive, image)
        command = [*self.ctr(), "images", "import", str(archive)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        archive.unlink()

    def ctr(self) -> list[str]:
        """containerd's own client, in the namespace of CRI."""
        return ["ctr", "-a", str(self.socket), "-n", "k8s.io"]
