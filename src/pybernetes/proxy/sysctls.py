"""Kernel parameters of connection tracking that the proxy sets when it starts, as kube-proxy does (`conntrack`).

Only what the configuration gives a value: 0 leaves a parameter as it is. What the kernel refuses (the size of the table
from within a network namespace) is logged, and the proxy goes on.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from pybernetes.api.times import parse_duration

from .config import Conntrack

FOLDER = Path("/proc/sys/net/netfilter")
log = logging.getLogger(__name__)


def parameters(conntrack: Conntrack, cores: int) -> dict[str, int]:
    """The parameters below net.netfilter, with their values."""
    wanted = {
        "nf_conntrack_tcp_timeout_established": _seconds(conntrack.tcp_established_timeout),
        "nf_conntrack_tcp_timeout_close_wait": _seconds(conntrack.tcp_close_wait_timeout),
        "nf_conntrack_udp_timeout": _seconds(conntrack.udp_timeout),
        "nf_conntrack_udp_timeout_stream": _seconds(conntrack.udp_stream_timeout),
        "nf_conntrack_tcp_be_liberal": int(bool(conntrack.tcp_be_liberal)),
    }
    if conntrack.max_per_core:
        wanted["nf_conntrack_max"] = max(conntrack.max_per_core * cores, conntrack.min or 0)
    return {name: value for name, value in wanted.items() if value}


def apply(conntrack: Conntrack, folder: Path = FOLDER) -> None:
    """Sets the parameters that have another value. The size of the table is never made smaller."""
    for name, value in parameters(conntrack, os.cpu_count() or 1).items():
        try:
            found = int((folder / name).read_text())
            if found == value or (name == "nf_conntrack_max" and found > value):
                continue
            (folder / name).write_text(str(value))
        except (OSError, ValueError) as error:
            log.info("net.netfilter.%s stays as it is: %s", name, error)


def _seconds(duration: str | None) -> int:
    return parse_duration(duration or "0s") // 10**9
