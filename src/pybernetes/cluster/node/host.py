"""Changes of the host that clusters with nodes share, and their removal.

    the network of each cluster; net.ipv4.ip_forward; the empty folders that nodes mount their own over

STATE says who uses it, and how the host was before the first cluster came; the last one to go restores it. It is kept
where it outlives a power failure, because folders do too. A folder is written down before it is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pybernetes.cluster import files, pidfile
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.node import fabric
from pybernetes.cluster.node.network import Network, choose, conflict, routes

STATE = Path("/var/lib/pybernetes/host.json")
FORWARDING = "net/ipv4/ip_forward"


@dataclass(slots=True)
class State:
    """`claims`: data folder of a cluster -> its network and the process that claims it; `folders`: made by us."""

    claims: dict[str, dict[str, int]] = field(default_factory=dict)
    forwarding: str | None = None
    folders: list[str] = field(default_factory=list)


def claim(data: Path, wanted: int | None, first: int, folders: list[str]) -> Network:
    """Gives a cluster its network (the `wanted` one if it had one, else a free one) and makes ready what all share."""
    with _state() as state:
        for other in [other for other in state.claims if other != str(data) and not _alive(other, state)]:
            fabric.remove(Network(state.claims.pop(other)["network"]))
        network = _choose(state, data, wanted, first)
        state.claims[str(data)] = {
            "network": network.index,
            "pid": os.getpid(),
            "started": pidfile.start_time(os.getpid()) or 0,
        }
        if state.forwarding is None:
            state.forwarding = fabric.read_sysctl(FORWARDING)
        missing = [path for path in _with_parents(folders) if not os.path.isdir(path)]
        state.folders += [path for path in missing if path not in state.folders]
        _save(state)
        for path in missing:
            os.makedirs(path, 0o755, exist_ok=True)
        fabric.sysctl(FORWARDING, "1")
    return network


def release(data: Path) -> None:
    """Takes a cluster's network away, and with the last cluster everything else. It may be said twice."""
    if not STATE.exists():
        return
    with _state() as state:
        claimed = state.claims.pop(str(data), None)
        if claimed is not None:
            fabric.remove(Network(claimed["network"]))
        if any(_alive(other, state) for other in state.claims):
            return _save(state)
        for other in state.claims.values():
            fabric.remove(Network(other["network"]))
        if state.forwarding is not None:
            fabric.sysctl(FORWARDING, state.forwarding)
        for path in reversed(state.folders):
            with contextlib.suppress(OSError):  # It is in use, or it is gone.
                os.rmdir(path)
        STATE.unlink(missing_ok=True)


def _choose(state: State, data: Path, wanted: int | None, first: int) -> Network:
    taken = {claim["network"]: other for other, claim in state.claims.items() if other != str(data)}
    with open("/proc/net/route") as file:
        routed = routes(file.read())
    if wanted is None:
        network = choose(first, taken, routed)
        if network is None:
            raise ClusterError("no network is free for nodes: all of 10.245.0.0/16 is routed or used by clusters")
        return network
    network = Network(wanted)
    if wanted in taken:
        raise ClusterError(f"the network of this cluster, {network.pods}, is used by the one in {taken[wanted]}")
    link = conflict(network, routed)
    if link is not None:
        raise ClusterError(f"the network of this cluster, {network.pods} and {network.fabric}, is routed over {link}")
    return network


def _alive(data: str, state: State) -> bool:
    """Whether a cluster has processes, or is being started."""
    claimed = state.claims[data]
    if pidfile.Process(claimed["pid"], claimed["started"]).alive:
        return True
    found = [pidfile.read(str(path)) for path in Path(data, "run").glob("*.pid")]
    return any(process is not None and process.alive for process in found)


def _with_parents(folders: list[str]) -> list[str]:
    found = []
    for folder in folders:
        path = Path(folder)
        found += [str(each) for each in [*reversed(path.parents), path] if str(each) not in found]
    return found


@contextlib.contextmanager
def _state() -> Iterator[State]:
    """The state, under an exclusive lock. The folder goes when it is empty."""
    while True:
        STATE.parent.mkdir(mode=0o700, exist_ok=True)
        # The lock is on the folder: the file in it is replaced by each change.
        descriptor = os.open(STATE.parent, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The last cluster may have removed it while we waited; then the lock is worth nothing.
        with contextlib.suppress(FileNotFoundError):
            if os.stat(STATE.parent).st_ino == os.fstat(descriptor).st_ino:
                break
        os.close(descriptor)
    try:
        try:
            content = json.loads(STATE.read_bytes())
            state = State(content["claims"], content["forwarding"], content["folders"])
        except FileNotFoundError:
            state = State()
        except (ValueError, KeyError) as error:
            raise ClusterError(f"{STATE} is damaged ({error}); remove it if no cluster with nodes runs") from error
        yield state
        if not STATE.exists():
            with contextlib.suppress(OSError):
                STATE.parent.rmdir()
    finally:
        os.close(descriptor)


def _save(state: State) -> None:
    content = {"claims": state.claims, "forwarding": state.forwarding, "folders": state.folders}
    files.write_private(STATE, json.dumps(content, indent=2).encode() + b"\n")
