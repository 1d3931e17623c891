"""What the kubelet counts about itself."""

from __future__ import annotations

import msgspec

from pybernetes.api.core.v1 import PodStatus
from pybernetes.kubelet.metrics import KubeletMetrics


def status(**states: dict[str, object]) -> PodStatus:
    return msgspec.convert(
        {"containerStatuses": [{"name": name, "state": state} for name, state in states.items()]}, PodStatus
    )


def test_an_end_is_counted_once() -> None:
    metrics = KubeletMetrics("n", observed=lambda: [], pods=lambda: [])
    running, ended = {"running": {}}, {"terminated": {"exitCode": 139, "reason": "Error"}}
    metrics.count_ends(status(a=running), status(a=ended, b=running))
    metrics.count_ends(status(a=ended, b=running), status(a=ended, b=running))
    metrics.count_ends(status(), status(c=ended))
    line = 'kubelet_terminated_containers_total{container_type="container",exit_code="139",reason="Error"} 2'
    assert line in metrics.registry.render().decode().splitlines()
