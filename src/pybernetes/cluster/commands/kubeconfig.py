"""`pyb kubeconfig`: prints the path of a cluster's own kubeconfig, as in `export KUBECONFIG=$(pyb kubeconfig)`."""

from __future__ import annotations

from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import locate


def main(argv: list[str]) -> int:
    """Prints the path."""
    arguments = flags.parser("kubeconfig", "Prints the path of a cluster's own kubeconfig.").parse_args(argv)
    layout = locate(arguments.name, arguments.data_dir)
    if not layout.kubeconfig.exists():
        raise ClusterError(f"cluster {layout.name!r} is not running; {flags.command('up', layout.name)} starts it")
    print(layout.kubeconfig)
    return 0
