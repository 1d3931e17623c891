"""Fixtures with real containers: a runtime alone, and whole clusters with a node, as long as a worker lives or a test.

Every test that uses one runs on each runtime, one after the other: a worker has one cluster at a time. `-k embedded`
or `-k containerd` chooses; a test about one of them alone is marked by `node.runtimes.only`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cri.embedded.machine import EmbeddedMachine
from node.cluster import Cluster
from node.containerd_machine import ContainerdMachine
from node.machine import Machine
from node.runtimes import RUNTIMES

from pybernetes.cluster.node import plan

MACHINES: dict[str, type[Machine]] = {"containerd": ContainerdMachine, "embedded": EmbeddedMachine}


@pytest.fixture(scope="session", params=RUNTIMES)
def runtime_name(request: pytest.FixtureRequest) -> str:
    """The container runtime that the test's nodes and machines have."""
    return str(request.param)


@pytest.fixture(scope="session")
def machine(runtime_name: str) -> Iterator[Machine]:
    """A runtime in namespaces of its own with our pause and busybox images; name your pods uniquely.

    `.socket` is its CRI socket, `.runtime()` a new client (use it as `async with`), `.enter(argv)` the command that
    runs something in its namespaces, `.run(*argv)` runs it.
    """
    kind = MACHINES[runtime_name]
    if reason := kind.lacking():
        pytest.skip(f"no {runtime_name}: {reason}")
    # Paths of sockets are short (107 bytes), and pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder, kind(Path(folder), f"pyb{os.getpid()}") as made:
        yield made


@pytest.fixture(scope="session")
def node(runtime_name: str) -> Iterator[Cluster]:
    """A cluster with one node that is Ready, shared by all tests of a worker: use namespaces of your own.

    `.kubectl(...)` runs Debian's kubectl, `.get(...)` is its JSON, `.apply(object, ...)`, `.inside(*argv)` runs a
    command on the node. A test that kills anything takes `own_node`.
    """
    yield from _cluster(f"t{os.getpid()}", runtime_name)


@pytest.fixture(scope="module")
def own_node(runtime_name: str) -> Iterator[Cluster]:
    """A cluster with one node of the test module's own, which it may kill."""
    yield from _cluster(f"k{os.getpid()}", runtime_name)


def _cluster(name: str, runtime: str) -> Iterator[Cluster]:
    if reason := plan.obstacle(runtime):
        pytest.skip(f"no node: {reason}")
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder, Cluster(Path(folder), name, runtime=runtime) as cluster:
        yield cluster
