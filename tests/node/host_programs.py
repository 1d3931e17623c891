"""Programs of the host inside containers: an image needs not have what a test wants to run."""

from __future__ import annotations

import os
import sys
from typing import Any


def libraries() -> list[str]:
    """The folders that programs of the host are linked to."""
    return [path for path in ("/usr", "/lib", "/lib64") if os.path.isdir(path)]


def python() -> list[str]:
    """The folders that this Python needs, with its packages."""
    return [*libraries(), *sorted({sys.prefix, sys.base_prefix} - {"/usr"})]


def give(pod: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """The pod with these folders of the host, read-only, at the same places in its first container."""
    spec = pod["spec"]
    volumes = [{"name": f"host-{index}", "hostPath": {"path": path}} for index, path in enumerate(paths)]
    mounts = [{"name": f"host-{index}", "mountPath": path, "readOnly": True} for index, path in enumerate(paths)]
    first = {**spec["containers"][0], "volumeMounts": mounts}
    return {**pod, "spec": {**spec, "containers": [first, *spec["containers"][1:]], "volumes": volumes}}
