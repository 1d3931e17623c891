"""Our own runtime in a node: nothing has to be installed for it. It takes the cluster's images in by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pybernetes.cluster.forking import PYTHON
from pybernetes.cluster.layout import Layout

SOCKET = "/run/pybernetes/runtime/runtime.sock"


def command(
    layout: Layout,
    folder: Path,
    template: Path | None,
    registries: Sequence[Path],
    *,
    socket: str = SOCKET,
    root: bool = True,
    plain_address: str = "",
    verbosity: int = 2,
) -> list[str]:
    """The command line of a node's runtime. Images and containers are on the cluster's disk, the rest goes with the
    node's power.

    Without `root` there are no cgroups; without namespaces either all pods have the machine's `plain_address`.
    """
    return [
        *PYTHON,
        "runtime",
        f"--root={folder / 'lib-runtime'}",
        f"--state={Path(socket).parent}",
        f"--listen={socket}",
        f"--cni-conf-dir={'/etc/cni' if root else folder / 'etc-cni'}/net.d",
        *([f"--cni-conf-template={template}"] if template else []),
        f"--cni-bin-dir={'/opt/cni' if root else folder / 'opt-cni'}/bin",
        f"--images={layout.images}",
        *(f"--registries={path}" for path in registries),
        *([] if root else ["--cgroups=none"]),
        *([f"--plain-address={plain_address}"] if plain_address else []),
        f"-v={verbosity}",
    ]
