"""A node and two pods as network namespaces, for plugins to connect; gone after the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from pybernetes.cni.netlink.namespace import Namespace

_numbers = count()


@dataclass(frozen=True)
class Lab:
    """Paths of the namespaces; `run` and `output` work inside one of them."""

    node: str
    pods: tuple[str, str]

    def run(self, where: str, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function inside a namespace."""
        with Namespace(where) as netns:
            return netns.run(function, *args)

    def output(self, where: str, *argv: str) -> str:
        """Runs a program inside a namespace."""
        done = self.run(where, lambda: subprocess.run(argv, capture_output=True, text=True, check=False))
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return str(done.stdout)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Three namespaces: a node with an address in the world, and two pods without any interface."""
    missing = [program for program in ("ip", "iptables") if shutil.which(program, path="/usr/sbin:/sbin:/bin") is None]
    if os.geteuid() != 0 or missing:
        pytest.skip("needs root" if not missing else f"not installed: {', '.join(missing)}")
    names = [f"pyb{os.getpid()}-{next(_numbers)}" for _ in range(3)]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        made = Lab(f"/run/netns/{names[0]}", (f"/run/netns/{names[1]}", f"/run/netns/{names[2]}"))
        made.output(made.node, "ip", "link", "set", "lo", "up")
        made.output(made.node, "ip", "address", "add", "192.0.2.1/24", "dev", "lo")
        yield made
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
