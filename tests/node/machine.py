"""A machine for tests: a runtime alone in namespaces of its own, with two small images, and nothing left afterwards.

`ContainerdMachine` and `EmbeddedMachine` say which runtime.

Its init process is PID 1 of a PID namespace: killing it ends everything that runs there. cgroups are below one of the
machine's own, which a cgroup namespace makes its root, so that machines of parallel test workers do not meet.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pybernetes.cluster.images import builtin, oci
from pybernetes.cri.remote import Runtime
from tools import wait_until

CGROUPS = Path("/sys/fs/cgroup")
SUBNET = "10.200.0.0/24"
BUSYBOX = "docker.io/library/busybox:latest"

INIT = """
set -e
mount --make-rshared /
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
for c in {controllers}; do
  mkdir /sys/fs/cgroup/$c
  if [ $c = systemd ]; then mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/$c
  else mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c; fi
done
mkdir -p /run/containerd
mount -t tmpfs -o mode=711 tmpfs /run/containerd
hostname {name}
ip link set lo up
ip link add cni0 address 0a:58:0a:c8:00:01 type bridge
ip link set cni0 up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch {folder}/ready
trap 'exit 0' TERM
while :; do sleep 3600 & wait $!; done
"""


class Machine(abc.ABC):
    """Namespaces with a runtime in them. Pods' addresses are the same on every machine: they never meet."""

    PROGRAMS: tuple[str, ...] = ("busybox", "ip", "nsenter", "unshare")
    """What must be installed."""
    socket: Path
    """Where the runtime serves CRI."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.cgroup = name
        self.init = 0
        self._unshare: subprocess.Popen[bytes] | None = None
        self._runtime: subprocess.Popen[bytes] | None = None

    @classmethod
    def lacking(cls) -> str:
        """Why no such machine can be had here, or nothing."""
        if os.geteuid() != 0:
            return "needs root"
        path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin"
        missing = [program for program in cls.PROGRAMS if shutil.which(program, path=path) is None]
        return f"not installed: {', '.join(missing)}" if missing else ""

    @abc.abstractmethod
    def command(self) -> list[str]:
        """What starts the runtime, inside the machine."""

    @abc.abstractmethod
    def import_image(self, image: oci.Image) -> None:
        """Gives the runtime an image."""

    def __enter__(self) -> Self:
        try:
            self.power_on()
            self.start_runtime()
            program = builtin.busybox_program()
            assert program is not None, "busybox-static is not installed"
            self.import_image(builtin.pause_image())
            self.import_image(builtin.busybox_image(program))
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def controllers(self) -> list[str]:
        """The cgroup v1 hierarchies."""
        return sorted(each.name for each in CGROUPS.iterdir() if (each / "tasks").exists())

    def power_on(self) -> None:
        """Starts the init process in new namespaces."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for sub in ("cni", "opt", "certs.d", "logs"):
            (self.folder / sub).mkdir(exist_ok=True)
        (self.folder / "ready").unlink(missing_ok=True)
        self.write_network()
        script = self.folder / "init.sh"
        script.write_text(INIT.format(folder=self.folder, name=self.name, controllers=" ".join(self.controllers())))
        for controller in self.controllers():
            path = CGROUPS / controller / self.cgroup
            path.mkdir(exist_ok=True)
            if controller == "cpuset":
                for value in ("cpuset.cpus", "cpuset.mems"):
                    (path / value).write_text((path.parent / value).read_text())
        namespaces = "--mount --net --uts --ipc --pid --cgroup --fork --kill-child --propagation slave"
        with (self.folder / "init.log").open("ab") as log:
            self._unshare = subprocess.Popen(
                ["sh", "-c", f"{self.join()}; exec unshare {namespaces} -- sh {script}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until((self.folder / "ready").exists, f"the machine's init ({self.folder}/init.log)")
        self.init = child_of(self._unshare.pid)

    def join(self) -> str:
        """The shell commands by which a shell goes into the machine's cgroup."""
        return "; ".join(f"echo $$ > {CGROUPS}/{each}/{self.cgroup}/cgroup.procs" for each in self.controllers())

    def write_network(self) -> None:
        """A bridge with addresses from the subnet; renamed into place, because runtimes watch the folder."""
        ipam = {
            "type": "host-local",
            "dataDir": f"{self.folder}/ipam",
            "ranges": [[{"subnet": SUBNET}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": ipam}
        bridge["addressCheck"] = True
        portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
        conflist = {"cniVersion": "1.0.0", "name": "pyb", "plugins": [bridge, portmap]}
        temporary = self.folder / "cni.new"
        temporary.write_text(json.dumps(conflist))
        temporary.rename(self.folder / "cni/10-pyb.conflist")

    def enter(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` inside the machine."""
        return ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C", "--", *argv]

    def run(self, *argv: str, check: bool = True) -> str:
        """Runs a command inside the machine and answers its output."""
        done = subprocess.run(self.enter(argv), check=False, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, f"{argv}: {done.returncode}: {done.stderr}"
        return done.stdout

    def start_runtime(self) -> None:
        """Starts the runtime and waits until it answers."""
        command = shlex.join(self.enter(self.command()))
        with (self.folder / "runtime.log").open("ab") as log:
            self._runtime = subprocess.Popen(
                ["sh", "-c", f"{self.join()}; exec {command}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        asyncio.run(self._wait())

    async def _wait(self) -> None:
        async with self.runtime() as runtime:
            await runtime.version(wait=60.0)

    def kill_runtime(self, number: int = signal.SIGKILL) -> None:
        """kill -9 of the runtime; what it started goes on."""
        assert self._runtime is not None
        os.kill(child_of(self._runtime.pid), number)  # nsenter is the one we started
        self._runtime.wait()

    def runtime(self) -> Runtime:
        """A client of the runtime; each event loop needs one of its own."""
        return Runtime(self.socket)

    def power_off(self) -> None:
        """kill -9 of the init process: nothing of the machine runs any more; its disk stays."""
        if self.init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init, signal.SIGKILL)
            self.init = 0
        for process in (self._unshare, self._runtime):
            if process is not None:
                process.kill()
                process.wait()

    def remove(self) -> None:
        """Takes the power, the cgroups and the disk away."""
        self.power_off()
        for controller in self.controllers():
            wait_until(lambda c=controller: remove_cgroups(CGROUPS / c / self.cgroup), f"{self.cgroup} to be empty")
        shutil.rmtree(self.folder, ignore_errors=True)


def child_of(pid: int) -> int:
    """The only child of a process."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def remove_cgroups(path: Path) -> bool:
    """Removes a cgroup with all below it; not while a process is in it."""
    try:
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)
    except OSError:
        time.sleep(0.01)
        return False
    return True
