"""Which runtimes a vector is tried on."""

from __future__ import annotations

import pytest

ours = pytest.mark.parametrize("runtime_name", ["embedded", "rootless"], indirect=True)
"""What is about our own runtime."""
root = pytest.mark.parametrize("runtime_name", ["embedded", "containerd"], indirect=True)
"""What needs cgroups, devices or the real root."""
