"""A machine for tests (see node/machine.py) whose runtime is root only in a user namespace: no cgroups, no devices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster.rootless import somebody
from cri.embedded.machine import EmbeddedMachine
from node.machine import child_of

from tools import wait_until

FIRST, COUNT = 300_000 + os.getpid() % 10_000 * 65_536, 65_536
"""The users of this machine that those of the namespace are; other workers have others."""

INIT = """
set -e
mount --make-rshared /
mount -t proc proc /proc
mount -t sysfs sysfs /sys
hostname {name}
ip link set lo up
ip link add cni0 address 0a:58:0a:c8:00:01 type bridge
ip link set cni0 up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch {folder}/ready
trap 'exit 0' TERM
while :; do sleep 3600 & wait $!; done
"""

IN_A_USER_NAMESPACE = """
import ctypes, os, sys, warnings
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
    sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
print("made", flush=True)
sys.stdin.read()
os.setgroups([]); os.setresgid(0, 0, 0); os.setresuid(0, 0, 0)
namespaces = "--mount --net --uts --ipc --pid --cgroup --fork --kill-child --propagation slave"
os.execvp("unshare", ["unshare", *namespaces.split(), "--", "sh", sys.argv[1]])
"""


class RootlessMachine(EmbeddedMachine):
    """Namespaces below a user namespace, with our runtime in them; `folder` is given to its root."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.python = somebody._python(folder)

    def controllers(self) -> list[str]:
        """None: cgroups are the real root's."""
        return []

    def power_on(self) -> None:
        """Starts the init process in new namespaces."""
        for sub in ("cni", "logs"):
            (self.folder / sub).mkdir(exist_ok=True)
        self.write_network()
        script = self.folder / "init.sh"
        script.write_text(INIT.format(folder=self.folder, name=self.name))
        self.folder.chmod(0o755)
        for path in (self.folder, *(self.folder / sub for sub in ("cni", "logs", "images"))):
            os.chown(path, FIRST, FIRST)
        with (self.folder / "init.log").open("ab") as log:
            self._unshare = subprocess.Popen(
                [sys.executable, "-c", IN_A_USER_NAMESPACE, str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._unshare.stdout is not None
        assert self._unshare.stdin is not None
        assert self._unshare.stdout.readline(), f"no user namespace ({self.folder}/init.log)"
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{self._unshare.pid}/{name}").write_text(f"0 {FIRST} {COUNT}")
        self._unshare.stdin.close()
        wait_until((self.folder / "ready").exists, f"the machine's init ({self.folder}/init.log)")
        self.init = child_of(self._unshare.pid)

    def join(self) -> str:
        """No cgroup is joined."""
        return "true"

    def enter(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` inside the machine, as its root."""
        return [
            "nsenter",
            "-t",
            str(self.init),
            "-U",
            *["-m", "-u", "-i", "-n", "-p", "-C", "-S", "0", "-G", "0", "--"],
            *argv,
        ]

    def command(self) -> list[str]:
        """`pyb runtime` without cgroups, by a world-executable interpreter."""
        command = super().command()
        return [str(self.python), *command[1:], "--cgroups", "none"]
