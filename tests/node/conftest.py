"""Fixtures with real containers: a containerd that lives as long as the test run, one for each worker."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from node.machine import Machine, lacking


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
