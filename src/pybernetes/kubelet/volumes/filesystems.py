"""Mounting by mount(8) with the file system's own helper, and formatting of devices that hold nothing yet.

Everything here blocks, and may for long: call it through `component.offload`. What is missing on the machine is named.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pybernetes.cri.mounting import is_mount_point

NETWORK_WITHIN: Final = 110.0
"""Seconds that mount(8) may take; it is killed before its caller gives up."""
FORMAT_WITHIN: Final = 3600.0
PATH: Final = "/usr/sbin:/sbin"
"""Where mount's helpers and mkfs are, whatever PATH the kubelet was started with."""
DEFAULT: Final = "ext4"


def mount_network(kind: str, source: str, target: Path, options: Sequence[str], *, needs: str) -> None:
    """Mount a file system of the network; nothing to do if one is mounted there. Raises OSError.

    `needs` is the Debian package with the helper.
    """
    if is_mount_point(target):
        return
    helper = f"mount.{kind}"
    if _which(helper) is None:
        raise OSError(f"the node has no {helper}, which {kind} volumes need (package {needs})")
    target.mkdir(parents=True, exist_ok=True, mode=0o750)
    try:
        _mount(kind, source, target, options)
    except OSError:
        target.rmdir()
        raise


def mount_device(device: str, target: Path, kind: str, options: Sequence[str], *, read_only: bool) -> None:
    """Mount a device; one that holds nothing is formatted first, unless it is to be read only. Raises OSError."""
    if is_mount_point(target):
        return
    found = content_of(device)
    if not found:
        if read_only:
            raise OSError(f"cannot mount unformatted disk {device} as it is read only")
        _format(device, kind or DEFAULT)
    elif kind and found != kind:
        raise OSError(f"failed to mount the volume as {kind!r}, it already contains {found}")
    target.mkdir(parents=True, exist_ok=True, mode=0o750)
    _mount(kind or found or DEFAULT, device, target, [*options, "ro"] if read_only else options)


def content_of(device: str) -> str:
    """The content of a device: a file system, or 'unknown data, probably partitions'; empty if there is none."""
    done = _run("blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device)
    if done.returncode == 2:  # blkid's way to say that it has found nothing
        return ""
    if done.returncode != 0:
        raise OSError(f"blkid {device}: {_problem(done)}")
    values = dict(line.partition("=")[::2] for line in done.stdout.decode().splitlines())
    return values.get("TYPE") or "unknown data, probably partitions"


def _format(device: str, kind: str) -> None:
    program = f"mkfs.{kind}"
    if _which(program) is None:
        raise OSError(f"the node has no {program}, which fsType {kind} needs")
    flags = ["-F", "-m0"] if kind in ("ext3", "ext4") else ["-f"] if kind == "xfs" else []
    done = _run(program, *flags, device, within=FORMAT_WITHIN)
    if done.returncode != 0:
        raise OSError(f"{program} {device}: {_problem(done)}")


def _mount(kind: str, source: str, target: Path, options: Sequence[str]) -> None:
    flags = ["-o", ",".join(options)] if options else []
    try:
        done = _run("mount", "-t", kind, *flags, source, str(target))
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"mount -t {kind} {source} did not return within {NETWORK_WITHIN:g} s") from None
    if done.returncode != 0:
        raise OSError(f"mount failed: exit status {done.returncode}: mount -t {kind} {source}: {_problem(done)}")


def _problem(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"exit status {done.returncode}"


def _run(*words: str, within: float = NETWORK_WITHIN) -> subprocess.CompletedProcess[bytes]:
    path = f"{os.environ.get('PATH', '')}:{PATH}"
    return subprocess.run(
        words,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=within,
        env={**os.environ, "PATH": path, "LC_ALL": "C"},
    )


def _which(program: str) -> str | None:
    for folder in f"{os.environ.get('PATH', '')}:{PATH}".split(":"):
        path = os.path.join(folder, program)
        if folder and os.access(path, os.X_OK):
            return path
    return None
