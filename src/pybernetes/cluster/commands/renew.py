"""`pyb renew` (internal): renews the certificates of a running cluster that end within a month, and tells if it did.

The supervisor runs it twice a day. The administrator's kubeconfigs hold his certificate, so they are written again.
"""

from __future__ import annotations

from pathlib import Path

from pybernetes.cluster import certificates, components
from pybernetes.cluster.commands import flags
from pybernetes.cluster.layout import Layout, locate
from pybernetes.cluster.supervisor import CHANGED


def main(argv: list[str]) -> int:
    """CHANGED if anything was made anew, else 0."""
    parser = flags.parser("renew", "Renews certificates of a running cluster that are near their end.")
    parser.add_argument("--address", required=True, help="of this machine, comma separated")
    arguments = parser.parse_args(argv)
    layout = locate(arguments.name, arguments.data_dir)
    addresses = [components.KUBERNETES_SERVICE_IP, *arguments.address.split(",")]
    made = certificates.ensure(layout.pki, addresses, running=True)
    nodes = [*_renew_nodes(layout), *certificates.ensure_simulated_nodes(layout.pki)]
    record = layout.read_record()
    if certificates.ADMIN in made and record is not None:
        from pybernetes.cluster import kubeconfig

        content = kubeconfig.document(record.context, record.server, layout.pki)
        kubeconfig.write(layout.kubeconfig, content)
        if record.user_kubeconfig:
            kubeconfig.merge(Path(record.user_kubeconfig), content)
    if made or nodes:
        print(f"certificates made anew: {', '.join([*made, *nodes])}", flush=True)
    return CHANGED if made else 0


def _renew_nodes(layout: Layout) -> list[str]:
    """Renews those of the nodes' kubelets, which notice it by themselves: nothing is started again for them."""
    files = sorted(layout.data.glob("nodes/*/machine.json"))
    if not files:
        return []
    from pybernetes.cluster.node.machine import Machine
    from pybernetes.cluster.node.prepare import ensure_certificates

    machines = [Machine.read(str(file)) for file in files]
    return [
        each.name
        for each in machines
        if ensure_certificates(layout, each.name, *filter(None, (each.address, each.address6)))
    ]
