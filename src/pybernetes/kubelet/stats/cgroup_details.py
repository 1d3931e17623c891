"""Reads a cgroup's limits, OOM count and disk IO when /metrics/cadvisor is scraped.

These figures are for dashboards alone, so the sampler, which reads usage every few seconds, does without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pybernetes.cri.cpu_weight import weight_to_shares

from ..cgroups.hierarchy import find_mounts

_MOST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class DeviceIO:
    """Bytes and requests read from and written to one block device by a cgroup."""

    read_bytes: int = 0
    write_bytes: int = 0
    reads: int = 0
    writes: int = 0


@dataclass(frozen=True, slots=True)
class Details:
    """Limits and counters of a cgroup; None where there is none."""

    cpu_shares: int | None = None
    cpu_quota: int | None = None
    cpu_period: int | None = None
    threads: int | None = None
    ooms: int | None = None
    """How many of its processes the kernel killed for want of memory."""
    io: dict[str, DeviceIO] = field(default_factory=dict)
    """By device, as `8:0`."""


Read = Callable[[str], Details]


def details_reader(mountinfo: Path = Path("/proc/self/mountinfo")) -> Read:
    """A function that reads a cgroup's details by its name."""
    mounts = find_mounts(mountinfo.read_text())
    if "memory" in mounts.controllers:
        return lambda name: _read_v1({key: Path(mount) for key, mount in mounts.controllers.items()}, name)
    unified = mounts.unified
    return (lambda name: _read_v2(unified / name.strip("/"))) if unified is not None else (lambda name: Details())


def _read_v1(mounts: dict[str, Path], name: str) -> Details:
    def text(controller: str, file: str) -> str:
        return _text(mounts[controller] / name.strip("/") / file) if controller in mounts else ""

    oom = dict(line.split() for line in text("memory", "memory.oom_control").splitlines() if len(line.split()) == 2)
    totals: dict[str, dict[str, int]] = {}
    for file, read, write in (
        ("blkio.throttle.io_service_bytes", "read_bytes", "write_bytes"),
        ("blkio.throttle.io_serviced", "reads", "writes"),
    ):
        for line in text("blkio", file).splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in ("Read", "Write"):
                totals.setdefault(parts[0], {})[read if parts[1] == "Read" else write] = int(parts[2])
    return Details(
        cpu_shares=_number(text("cpu", "cpu.shares")),
        cpu_quota=_number(text("cpu", "cpu.cfs_quota_us")),
        cpu_period=_number(text("cpu", "cpu.cfs_period_us")),
        threads=_number(text("pids", "pids.current")),
        ooms=_number(oom.get("oom_kill", "")),
        io={device: DeviceIO(**values) for device, values in totals.items()},
    )


def _read_v2(folder: Path) -> Details:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    weight = _number(_text(folder / "cpu.weight"))
    events = dict(line.split() for line in _text(folder / "memory.events").splitlines())
    io = {}
    for line in _text(folder / "io.stat").splitlines():
        device, *fields = line.split()
        values = {key: int(value) for key, _, value in (each.partition("=") for each in fields)}
        amounts = (values.get(key, 0) for key in ("rbytes", "wbytes", "rios", "wios"))
        io[device] = DeviceIO(*amounts)
    return Details(
        cpu_shares=weight_to_shares(weight) if weight is not None else None,
        cpu_quota=_number(quota) if quota != "max" else -1,
        cpu_period=_number(period),
        threads=_number(_text(folder / "pids.current")),
        ooms=_number(events.get("oom_kill", "")),
        io=io,
    )


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdecimal() else None


def _text(path: Path) -> str:
    try:
        with path.open() as file:
            return file.read(_MOST).strip()
    except OSError:
        return ""
