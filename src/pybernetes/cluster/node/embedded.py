"""Our own runtime in a node: nothing has to be installed for it. It takes the cluster's images in by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pybernetes.cluster.components import PYTHON
from pybernetes.cluster.layout import Layout

SOCKET = "/run/pybernetes/runtime/runtime.sock"


def command(
    layout: Layout, folder: Path, template: Path, registries: Sequence[Path], *, root: bool = True
) -> list[str]:
    """What a node runs. Images and containers are on the cluster's disk, the rest goes with the node's power."""
    return [
        *PYTHON,
        "runtime",
        f"--root={folder / 'lib-runtime'}",
        f"--state={Path(SOCKET).parent}",
        f"--listen={SOCKET}",
        f"--cni-conf-dir={'/etc/cni' if root else folder / 'etc-cni'}/net.d",
        f"--cni-conf-template={template}",
        f"--cni-bin-dir={'/opt/cni' if root else folder / 'opt-cni'}/bin",
        f"--images={layout.images}",
        *(f"--registries={path}" for path in registries),
        *([] if root else ["--cgroups=none"]),
    ]
