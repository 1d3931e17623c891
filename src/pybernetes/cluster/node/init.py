"""`pyb run-node MACHINE_FILE` (internal): a node, as namespaces with an init process in them.

The process that the supervisor starts goes into new namespaces and forks: the child is PID 1 there, mounts what the
node has of its own, connects it to the switch and keeps its programs (runtime, kubelet, node-network) running, as
systemd would. The parent waits for it, and serves the cluster's images to it (`mirror.py`). Killing either is a power
failure: the kernel ends everything in the PID namespace, and mounts, links and addresses go with their namespaces. The
supervisor then starts the node again.

Everything else of the machine (programs, /home, /tmp) is the host's, at the same places.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from pathlib import Path

from pybernetes.cluster import supervisor
from pybernetes.cluster.node import cgroups, mirror, syscalls
from pybernetes.cluster.node.machine import BOOT_ID, FILES, FOLDERS, KERNEL_BOOT_ID, PARTITIONED, RUN, Machine
from pybernetes.cluster.node.netlink import Netlink
from pybernetes.cluster.node.network import SERVICES6, mac
from pybernetes.cluster.node.programs import PATH
from pybernetes.cluster.rootless import plain

NAMESPACES = syscalls.NEWNS | syscalls.NEWUTS | syscalls.NEWIPC | syscalls.NEWPID | syscalls.NEWNET | syscalls.NEWCGROUP
# Of this namespace. Proxy ARP makes the node answer the host for its pods (network.py says why), at once and not after
# 0.8 s, but not for those behind a tunnel: that is a device of the same medium.
SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/eth0/send_redirects": "0",
    "net/ipv4/conf/eth0/proxy_arp": "1",
    "net/ipv4/conf/eth0/medium_id": "1",
    "net/ipv4/neigh/eth0/proxy_delay": "0",
}
# Of nodes with both IP versions. Addresses are unique by plan: detecting others with the same would take a second.
SYSCTLS6 = {
    "net/ipv6/conf/all/forwarding": "1",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/eth0/accept_dad": "0",
    "net/ipv6/conf/eth0/accept_ra": "0",
}
# Where the kernel has them: what pods of this node send each other passes the packet rules too, else an answer would
# come back with the endpoint's address instead of the Service's.
BRIDGE_SYSCTLS = {"net/bridge/bridge-nf-call-iptables": "1", "net/bridge/bridge-nf-call-ip6tables": "1"}


def main(argv: list[str]) -> int:
    """Runs a node until it is terminated, or its init process dies."""
    machine = Machine.read(argv[0])
    if machine.isolation == "none":
        return plain.run(machine)
    found = cgroups.hierarchies() if machine.isolation == "root" else []
    cgroups.enter(machine.cgroup, found)
    host = Netlink()  # stays in the network of the switch
    host.delete(machine.port)  # The cable of a node that was switched off a moment ago may still be there.
    syscalls.unshare(NAMESPACES)
    host.add_cable(machine.port, machine.bridge, os.getpid(), "eth0", mac(machine.address))
    signal.signal(signal.SIGUSR1, lambda *_: _plug(host, machine))
    _plug(host, machine)
    cgroups.settle(machine.cgroup, found)
    parent = os.pidfd_open(os.getpid())
    init = os.fork()
    if init == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        host.close()
        return _init(machine, cgroups.visible(found), parent)
    os.close(parent)
    return _wait(init, machine)


def _plug(host: Netlink, machine: Machine) -> None:
    """Switches the node's port of the switch on, or off for a node that is cut off (`pyb node partition`)."""
    try:
        if os.path.exists(f"{machine.folder}/{PARTITIONED}"):
            host.down(machine.port)
        else:
            host.up(machine.port)
    except OSError as error:
        print(f"cannot switch {machine.port}: {error}", flush=True)


def _wait(init: int, machine: Machine) -> int:
    """Serves images until the init process ends, and ends as it does; passes on the request to end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(init, signal.SIGTERM))
    images = mirror.Mirror(mirror.listen(), Path(machine.images), mirror.key_of(Path(machine.folder)))
    ended = os.pidfd_open(init)
    while True:
        poll = select.poll()
        for descriptor in (ended, *images.descriptors()):
            poll.register(descriptor, select.POLLIN)
        if ended in dict(poll.poll()):
            break
        images.serve()
    _, status = os.waitpid(init, 0)
    print(f"the node ended: {supervisor.describe_exit(status)}", flush=True)
    return 0 if status == 0 else 1


def _init(machine: Machine, found: list[cgroups.Hierarchy], parent: int) -> int:
    syscalls.signal_at_parents_death(signal.SIGKILL)
    if _ended(parent):
        return 1  # it died before prctl set the death signal
    os.close(parent)
    _mount(machine, found)
    os.environ["PATH"] = PATH
    if machine.proxy:
        os.environ["HTTPS_PROXY"] = machine.proxy
    socket.sethostname(machine.name)
    _connect(machine)
    children: list[supervisor.Child] = [
        _Program(_spec(program.name, program.argv, program.log)) for program in machine.programs
    ]
    keeper = supervisor.Supervisor(children, notify=-1)
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {machine.name} is up", flush=True)
    keeper.run()
    return 0


class _Program(supervisor.Child):
    """A program of the node. How often it ended is written down, for those who look in from outside."""

    def start(self) -> None:
        if self.name == "containerd":  # a pod whose network it cannot read of would never end
            from pybernetes.cni.cache import Cache  # which other nodes do without

            Cache().forget_broken()
        super().start()

    def exited(self) -> None:
        super().exited()
        _write(f"{RUN}/{self.name}.restarts", str(self.restarts))


def _ended(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _spec(name: str, argv: list[str], log: str) -> dict[str, object]:
    return {"name": name, "argv": argv, "log": log, "pidFile": f"{RUN}/{name}.pid"}


def _mount(machine: Machine, found: list[cgroups.Hierarchy]) -> None:
    """The file systems of the node. Mounts of the host arrive here, none of the node's leaves."""
    syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_SLAVE)
    syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_SHARED)
    quiet = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    below = _mounts_below_sys()
    syscalls.mount("proc", "/proc", "proc", quiet)
    syscalls.mount("sysfs", "/sys", "sysfs", quiet)  # so that it shows the links of this namespace
    for target, kind in below:
        with contextlib.suppress(OSError):  # of use to few, and not every one can be had in a namespace
            syscalls.mount(kind, target, kind, quiet)
    _mount_cgroups(found, quiet)
    _mount_run(machine)
    for target, name in FOLDERS.items() if machine.isolation == "root" else ():
        source = f"{machine.folder}/{name}"
        os.makedirs(source, exist_ok=True)
        syscalls.bind(source, target)
    for target, name in FILES.items():
        target = os.path.realpath(target)
        if os.path.exists(target):
            syscalls.bind(f"{machine.folder}/{name}", target)
    with open("/proc/sys/kernel/random/uuid") as file:
        _write(BOOT_ID, file.read())
    syscalls.bind(BOOT_ID, KERNEL_BOOT_ID)


def _mounts_below_sys() -> list[tuple[str, str]]:
    """The host's mounts below /sys that a node needs again: targets and kinds."""
    kinds = ("securityfs", "bpf", "fusectl", "configfs", "debugfs", "tracefs")
    with open("/proc/self/mounts") as file:
        fields = [line.split(" ") for line in file]
    return [(target, kind) for _, target, kind, *_ in fields if target.startswith("/sys/") and kind in kinds]


def _mount_cgroups(found: list[cgroups.Hierarchy], flags: int) -> None:
    if all(each.mount != cgroups.MOUNT for each in found):
        syscalls.mount("tmpfs", cgroups.MOUNT, "tmpfs", flags, "mode=755")
    for each in found:
        os.makedirs(each.mount, exist_ok=True)
        syscalls.mount("cgroup", each.mount, "cgroup" if each.version == 1 else "cgroup2", flags, each.options)
        # Hierarchies of several controllers (`cpu,cpuacct`) are known by each of them.
        for controller in each.mount.rpartition("/")[2].split(",") if "," in each.mount else ():
            os.symlink(os.path.basename(each.mount), f"{cgroups.MOUNT}/{controller}")


def _mount_run(machine: Machine) -> None:
    """A fresh /run, in which only what the node's programs are made of is kept if it happens to be there."""
    kept = [path for path in machine.keep if path.startswith("/run/")]
    descriptors = {path: os.open(path, os.O_PATH) for path in kept}
    resolver = os.path.realpath("/etc/resolv.conf")
    syscalls.mount("tmpfs", "/run", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
    for path, descriptor in descriptors.items():
        os.makedirs(path)
        syscalls.bind(f"/proc/self/fd/{descriptor}", path, recursive=True)
        os.close(descriptor)
    for path in (RUN, "/run/lock", "/run/netns"):
        os.makedirs(path, exist_ok=True)
    if resolver.startswith("/run/"):
        os.makedirs(os.path.dirname(resolver), exist_ok=True)
        with open(resolver, "w"):
            pass


def _connect(machine: Machine) -> None:
    """The node's network: its cable, its bridge for pods and its routes."""
    with Netlink() as node:
        node.up("lo")
        node.add_address("eth0", f"{machine.address}/24")
        for name, value in SYSCTLS.items():
            _write(f"/proc/sys/{name}", value)
        for name, value in BRIDGE_SYSCTLS.items():
            with contextlib.suppress(OSError):
                _write(f"/proc/sys/{name}", value)
        for name, value in SYSCTLS6.items() if machine.address6 else ():
            _write(f"/proc/sys/{name}", value)
        node.up("eth0")
        node.add_route("0.0.0.0/0", "eth0", gateway=machine.gateway)
        if machine.address6:
            node.add_address("eth0", f"{machine.address6}/64")
            # Packets to Services need a route before the proxy's rules translate them. Not a wider one: the kernel
            # takes no route through a tunnel whose gateway is found elsewhere.
            node.add_route(SERVICES6, "eth0", gateway=machine.gateway6)
        # With a MAC of its own: CNI's plugin cannot give one to a bridge that it finds without ports.
        node.add_bridge("cni0", mac(machine.address).replace("0a:58", "0a:59", 1))
        node.up("cni0")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
