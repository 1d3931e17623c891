"""Counts what a node has: processes, mounts, namespaces, links, cgroups, addresses, folders of pods.

Two counts with the same pods (or none) on the node must be equal, whatever happened in between.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
ADDRESSES = "/run/cni/networks"
"""Where CNI's host-local keeps the addresses it gave away, a file for each."""

FOLDERS = ("/var/lib/kubelet/pods", "/var/log/pods", "/var/log/containers", "/run/containerd/runc/k8s.io")
"""What has something of each pod in it."""

OF_OTHER_TESTS = re.escape(tempfile.gettempdir()) + r"/tmp\w+/hung|/run/netns(/.*)?"
OF_OTHER_TESTS += "|" + re.escape(tempfile.gettempdir()) + "/pytest-of-[^/]+/.*"
"""The mounts of tests/hung_mount.py, of `ip netns` on the machine, and below `tmp_path`, where nodes have nothing."""

LAUNCHER = "pybernetes.cri.embedded.launcher"
"""What a launcher is called with."""


@dataclass(frozen=True)
class Count:
    """How much a node has of each thing; ids and addresses, which differ from one pod to the next, are left out."""

    processes: Counter[str]
    mounts: Counter[str]
    namespaces: Counter[str]
    links: Counter[str]
    cgroups: Counter[str]
    addresses: Counter[str]
    folders: Counter[str]

    def more_than(self, before: Count) -> dict[str, Counter[str]]:
        """What is here and was not there: the leaks."""
        found = {each.name: getattr(self, each.name) - getattr(before, each.name) for each in fields(self)}
        return {name: more for name, more in found.items() if more}


def count(init: int, cgroup: str, addresses: str = ADDRESSES, folders: Sequence[str] = ()) -> Count:
    """Counts the node with that init process, that cgroup, that folder of addresses, and folders of its own."""
    members = processes(init)
    given = Path(f"/proc/{init}/root{addresses}").glob("*/*")
    places = {folder: Path(f"/proc/{init}/root{folder}") for folder in (*FOLDERS, *folders)}
    return Count(
        processes=Counter(command(pid) for pid in members if not _between_rounds(pid)),
        mounts=Counter(_mounts(init)),
        namespaces=_namespaces(members, init),
        links=Counter(_links(init)),
        cgroups=Counter(_cgroups(cgroup)),
        addresses=Counter("address" for path in given if re.fullmatch(r"[0-9.]+|[0-9a-f:]+", path.name)),
        folders=Counter(folder for folder, place in places.items() for name in _names(place) if name[0] != "."),
    )


def processes(init: int) -> list[int]:
    """The processes in the PID namespace of `init` and in those below it."""
    found = [init]
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = Path(entry.path, "stat").read_text().rpartition(") ")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry.name))
    for pid in found:
        found += children.get(pid, ())
    return found


def command(pid: int) -> str:
    """What a process was started as, without what differs from one to the next."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        program = os.path.basename(words[0])
        if program.startswith("python") and "pybernetes" in words:
            return f"pyb {words[words.index('pybernetes') + 1]}"
        return "launcher" if program.startswith("python") and LAUNCHER in " ".join(words) else program
    return "gone"


def _between_rounds(pid: int) -> bool:
    """Whether it is the short sleep of a shell's loop, which comes and goes."""
    with contextlib.suppress(OSError):
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
        return command(pid) == "sleep" and command(parent) == "sh"
    return False


def _mounts(init: int) -> list[str]:
    """Where something is mounted. A node that starts copies the machine's mounts, those of tests beside it too."""
    return [nameless(line.split(" ")[4]) for line in _mountinfo(init)]


def _mountinfo(init: int) -> list[str]:
    """The lines of mountinfo, without those of other tests."""
    lines = Path(f"/proc/{init}/mountinfo").read_text().splitlines()
    return [line for line in lines if not re.fullmatch(OF_OTHER_TESTS, line.split(" ")[4])]


def _namespaces(members: list[int], init: int) -> Counter[str]:
    """How many namespaces of each sort; a network namespace without a process is held by a mount."""
    found = set()
    for pid in members:
        for kind in ("cgroup", "ipc", "mnt", "net", "pid", "uts"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
    for line in _mountinfo(init):
        held = re.search(r" (net:\[\d+\]) ", line)
        if held:
            found.add(held[1])
    return Counter(name.partition(":")[0] for name in found)


def _links(init: int) -> list[str]:
    """The links of the node; those of pods by their sort, because their names differ."""
    done = subprocess.run(
        ["nsenter", "-t", str(init), "-n", "ip", "-o", "link"], check=True, capture_output=True, text=True
    )
    names = [line.split(": ")[1].partition("@")[0] for line in done.stdout.splitlines()]
    return [re.sub(r"^veth.*", "veth", name) for name in names]


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return os.listdir(folder)
    return []


def _cgroups(cgroup: str) -> list[str]:
    """The cgroups below the node's; v1 has a tree for each controller."""
    found = []
    for top in cgroup_folders(cgroup):
        for folder, _, _ in os.walk(top):
            found.append(nameless(os.path.relpath(folder, CGROUPS)))
    return found


def cgroup_folders(cgroup: str) -> list[Path]:
    """The folders of a cgroup, one in each hierarchy."""
    return [top / cgroup for top in (CGROUPS, *CGROUPS.iterdir()) if (top / cgroup).is_dir()]


IDS = re.compile(
    r"[0-9a-f]{64}"  # a container's
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a pod's
    r"|(?<=kube-api-access-)\w{5}"  # of the volume with its token
    r"|(?<=snapshots/)\d+"
)


def nameless(path: str) -> str:
    """A path without the ids in it."""
    return IDS.sub("ID", path)
