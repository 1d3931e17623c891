"""One user writes events without an end: EventRateLimit, where it is switched on, keeps them few; the rest goes on."""

from __future__ import annotations

import json
from pathlib import Path

from apiserver.client import Client

import tools

BURST, FLOOD = 50, 200
CONFIGURATION = f"""
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{{type: User, qps: 1, burst: {BURST}}}]
"""


def test_a_flood_of_events_ends_at_its_limit_and_other_requests_do_not(tmp_path: Path) -> None:
    (tmp_path / "admission.yaml").write_text(CONFIGURATION)
    flags = [f"--admission-control-config-file={tmp_path}/admission.yaml", "--enable-admission-plugins=EventRateLimit"]
    with tools.api_server(tmp_path, *flags) as server:
        client, found = Client(server), []
        for number in range(FLOOD):
            event = {
                "metadata": {"name": f"event{number}"},
                "involvedObject": {"kind": "Pod", "name": "pod", "namespace": "default"},
                "reason": "Flood",
                "message": "x" * 1000,
            }
            found.append(client.post("/api/v1/namespaces/default/events", event))
        refused = [each for each in found if each.status == 429]
        assert len(refused) >= FLOOD - 2 * BURST
        assert {each.json["reason"] for each in refused} == {"TooManyRequests"}
        assert client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "other"}}).status == 201
        kept = json.loads(client.get("/api/v1/namespaces/default/events").body)["items"]
        assert len(kept) == FLOOD - len(refused)
