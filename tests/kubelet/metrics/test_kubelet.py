"""What the kubelet counts about itself."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from pybernetes.api.core.v1 import PodStatus
from pybernetes.component import tasks
from pybernetes.component.watchdog import LoopWatchdog
from pybernetes.kubelet.metrics.kubelet import KubeletMetrics


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


def test_failures_of_tasks_and_the_event_loops_lag_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "failures", Counter({"pleg": 3}))
    watchdog = LoopWatchdog()
    watchdog.stalls, watchdog.max_lag = 2, 1.5
    metrics = KubeletMetrics("n", observed=lambda: [], pods=lambda: [])
    metrics.watch(watchdog)
    lines = metrics.registry.render().decode().splitlines()
    assert 'pybernetes_task_failures_total{task="pleg"} 3' in lines
    assert "pybernetes_event_loop_stalls_total 2" in lines
    assert "pybernetes_event_loop_lag_seconds 1.5" in lines
