"""What plugins are handed of a sandbox: ports, names, bandwidth."""

from __future__ import annotations

import pytest

from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.network_capabilities import EGRESS, INGRESS, bandwidth, capability_args
from pybernetes.cri.errors import CRIError


def test_ports_names_and_bandwidth_become_capability_arguments() -> None:
    config = cri.PodSandboxConfig(
        port_mappings=[cri.PortMapping(container_port=80, host_port=8080), cri.PortMapping(container_port=81)],
        dns_config=cri.DNSConfig(servers=["10.96.0.10"], searches=["shop.svc.cluster.local"], options=["ndots:5"]),
        annotations={INGRESS: "10M", EGRESS: "1G", "other": "x"},
    )
    assert capability_args(config) == {
        "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
        "dns": {"servers": ["10.96.0.10"], "searches": ["shop.svc.cluster.local"], "options": ["ndots:5"]},
        "bandwidth": {
            "ingressRate": 10_000_000,
            "ingressBurst": 1 << 20,
            "egressRate": 1_000_000_000,
            "egressBurst": 100_000_000,
        },
    }
    assert capability_args(cri.PodSandboxConfig()) == {}


@pytest.mark.parametrize("text", ["", "fast", "10", "-1M", "999", "2P", "1e30", "5" * 400])
def test_a_bandwidth_that_makes_no_sense_is_refused_by_the_annotations_name(text: str) -> None:
    with pytest.raises(CRIError, match="egress-bandwidth"):
        bandwidth({EGRESS: text})
