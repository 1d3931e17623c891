"""Fixtures with real containers: a containerd, and whole clusters with a node, as long as a worker lives or a test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from node.cluster import RUNTIME, Cluster
from node.machine import Machine, lacking

from pybernetes.cluster.node import plan


@pytest.fixture(scope="session")
def containerd() -> Iterator[Machine]:
    """A containerd in namespaces of its own with our pause and busybox images; name your pods uniquely.

    `.socket` is its CRI socket, `.runtime()` a new client (use it as `async with`), `.enter(argv)` the command that
    runs something in its namespaces, `.run(*argv)` runs it.
    """
    reason = lacking()
    if reason:
        pytest.skip(f"no containerd: {reason}")
    # Paths of sockets are short (107 bytes), and pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder, Machine(Path(folder), f"pyb{os.getpid()}") as machine:
        yield machine


@pytest.fixture(scope="session")
def node() -> Iterator[Cluster]:
    """A cluster with one node that is Ready, shared by all tests of a worker: use namespaces of your own.

    `.kubectl(...)` runs Debian's kubectl, `.get(...)` is its JSON, `.apply(object, ...)`, `.inside(*argv)` runs a
    command on the node. A test that kills anything takes `own_node`.
    """
    yield from _cluster(f"t{os.getpid()}")


@pytest.fixture(scope="module")
def own_node() -> Iterator[Cluster]:
    """A cluster with one node of the test module's own, which it may kill."""
    yield from _cluster(f"k{os.getpid()}")


def _cluster(name: str) -> Iterator[Cluster]:
    reason = plan.obstacle(RUNTIME)
    if reason:
        pytest.skip(f"no node: {reason}")
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder, Cluster(Path(folder), name) as cluster:
        yield cluster
