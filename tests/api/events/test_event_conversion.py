"""An event keeps everything on the way between its two groups."""

from __future__ import annotations

import msgspec

from pybernetes.api import scheme

CORE = {
    "kind": "Event",
    "apiVersion": "v1",
    "metadata": {"name": "a", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "reason": "Started",
    "message": "Container started",
    "source": {"component": "kubelet", "host": "n"},
    "firstTimestamp": "2024-01-01T00:00:00Z",
    "lastTimestamp": "2024-01-01T00:00:01Z",
    "count": 2,
    "type": "Normal",
    "eventTime": "2024-01-01T00:00:00.000001Z",
    "series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000002Z"},
    "action": "Start",
    "related": {"kind": "Node", "name": "n"},
    "reportingComponent": "kubelet",
    "reportingInstance": "n",
}
EVENTS = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "a", "namespace": "default"},
    "eventTime": "2024-01-01T00:00:00.000001Z",
    "series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000002Z"},
    "reportingController": "kubelet",
    "reportingInstance": "n",
    "action": "Start",
    "reason": "Started",
    "regarding": {"kind": "Pod", "name": "p"},
    "related": {"kind": "Node", "name": "n"},
    "note": "Container started",
    "type": "Normal",
    "deprecatedSource": {"component": "kubelet", "host": "n"},
    "deprecatedFirstTimestamp": "2024-01-01T00:00:00Z",
    "deprecatedLastTimestamp": "2024-01-01T00:00:01Z",
    "deprecatedCount": 2,
}


def test_each_face_shows_the_other_under_its_own_names() -> None:
    core = scheme.resource("", "v1", "events")
    events = scheme.resource("events.k8s.io", "v1", "events")
    assert core is not None
    assert events is not None
    assert scheme.storage_resource(events) is core
    shown = scheme.convert(msgspec.convert(CORE, core.type), core, events)
    assert msgspec.json.decode(scheme.encoder.encode(shown)) == EVENTS
    stored = scheme.convert(msgspec.convert(EVENTS, events.type), events, core)
    assert msgspec.json.decode(scheme.encoder.encode(stored)) == CORE


def test_what_core_writes_though_empty_is_left_out() -> None:
    core = scheme.resource("", "v1", "events")
    events = scheme.resource("events.k8s.io", "v1", "events")
    assert core is not None
    assert events is not None
    empty = {**CORE, "reportingComponent": "", "reportingInstance": ""}
    shown = msgspec.json.decode(scheme.encoder.encode(scheme.convert(msgspec.convert(empty, core.type), core, events)))
    assert not {"reportingController", "reportingInstance"} & shown.keys()
