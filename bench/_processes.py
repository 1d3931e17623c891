"""What a tree of processes costs: memory that is theirs, and time on the processors."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """A process and all that descend from it, in whatever PID namespace."""
    children = defaultdict(list)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                children[int(_stat(int(entry.name))[1])].append(int(entry.name))
    found = [root]
    for pid in found:
        found += children[pid]
    return found


def memory_mb(pid: int) -> float:
    """The share of a process in the memory of the machine (PSS: a page that n have in common counts 1/n)."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pids: list[int]) -> float:
    """The time that processes have had."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = _stat(pid)
            total += int(fields[11]) + int(fields[12])
    return total / TICKS


def machine_seconds() -> float:
    """The time that the machine's processors have worked, for whomever."""
    user, nice, system, _idle, _iowait, *rest = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(rest)) / TICKS


def by_role(root: int) -> dict[str, list[int]]:
    """The processes of a tree by what they are; those that have ended meanwhile are left out."""
    found: dict[str, list[int]] = {}
    for pid in tree(root):
        name = role(pid)
        if name:
            found.setdefault(name, []).append(pid)
    return found


def idle_cpu(root: int, seconds: float) -> dict[str, float]:
    """The processors that each part of a tree uses while idle (1.0 = one, all the time)."""
    roles = by_role(root)
    before, began = {name: cpu_seconds(pids) for name, pids in roles.items()}, time.perf_counter()
    time.sleep(seconds)
    elapsed = time.perf_counter() - began
    return {name: (cpu_seconds(pids) - before[name]) / elapsed for name, pids in roles.items()}


def role(pid: int) -> str:
    """What a process is, in a word: `apiserver`, `kubelet`, `launcher`, `containerd-shim`, or its program's name."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        program = os.path.basename(words[0])
        if program.startswith("python") and "pybernetes" in words:
            return words[words.index("pybernetes") + 1]
        if program.startswith("python") and any("embedded.launcher" in word for word in words):
            return "launcher"
        return "containerd-shim" if program.startswith("containerd-shim") else program
    return ""


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may have spaces in it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
