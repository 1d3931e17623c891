"""`pyb renew` (internal): renews the certificates of a running cluster that end within a month, and tells if it did.

The supervisor runs it twice a day. The administrator's kubeconfigs hold his certificate, so they are written again.
"""

from __future__ import annotations

from pathlib import Path

from pybernetes.cluster import certificates, components
from pybernetes.cluster.commands import flags
from pybernetes.cluster.layout import locate
from pybernetes.cluster.supervisor import CHANGED


def main(argv: list[str]) -> int:
    """CHANGED if anything was made anew, else 0."""
    parser = flags.parser("renew", "Renews certificates of a running cluster that are near their end.")
    parser.add_argument("--address", required=True, help="of this machine towards others")
    arguments = parser.parse_args(argv)
    layout = locate(arguments.name, arguments.data_dir)
    addresses = [components.KUBERNETES_SERVICE_IP, arguments.address]
    made = certificates.ensure(layout.pki, addresses, running=True)
    record = layout.read_record()
    if certificates.ADMIN in made and record is not None:
        from pybernetes.cluster import kubeconfig

        content = kubeconfig.document(record.context, record.server, layout.pki)
        kubeconfig.write(layout.kubeconfig, content)
        if record.user_kubeconfig:
            kubeconfig.merge(Path(record.user_kubeconfig), content)
    if made:
        print(f"certificates made anew: {', '.join(made)}", flush=True)
    return CHANGED if made else 0
