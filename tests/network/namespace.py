"""A network namespace for a test, gone after it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

import pytest

from pybernetes.cni.netlink.namespace import Namespace

_numbers = count()
T = TypeVar("T")


class NetworkNamespace:
    """`run` calls a function inside, `output` runs a program inside."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = f"/run/netns/{name}"

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """What a function returns that is called inside."""
        with Namespace(self.path) as netns:
            return netns.run(function, *args)

    def output(self, *argv: str) -> str:
        """What a program prints that is run inside; it must succeed."""
        done = self.run(lambda: subprocess.run(argv, capture_output=True, text=True, check=False))
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout


@contextmanager
def network_namespace(*programs: str) -> Iterator[NetworkNamespace]:
    """A namespace with its loopback device up; skips the test where it or a program cannot be had."""
    missing = [name for name in ("ip", *programs) if shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin") is None]
    if os.geteuid() != 0 or missing:
        pytest.skip("needs root" if not missing else f"not installed: {', '.join(missing)}")
    made = NetworkNamespace(f"pybn{os.getpid()}-{next(_numbers)}")
    subprocess.run(["ip", "netns", "add", made.name], check=True)
    try:
        made.output("ip", "link", "set", "lo", "up")
        yield made
    finally:
        subprocess.run(["ip", "netns", "delete", made.name], check=False, capture_output=True)
