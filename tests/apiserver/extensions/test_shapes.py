"""Definitions in the shapes of well-known projects are accepted, and enforced."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import Kind, version
from apiserver.extensions.shapes import CERTIFICATE, CERTIFICATE_COLUMNS, MONITOR, ROLLOUT


@pytest.fixture
def certificate(define: Define) -> Kind:
    made = version(CERTIFICATE, subresources={"status": {}}, additionalPrinterColumns=CERTIFICATE_COLUMNS)
    names = {"plural": "certificates", "kind": "Certificate", "shortNames": ["cert"], "categories": ["cert-manager"]}
    return define(made, names=names)


@pytest.fixture
def rollout(define: Define) -> Kind:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
             "labelSelectorPath": ".status.selector"}  # fmt: skip
    made = version(ROLLOUT, "v1", subresources={"status": {}, "scale": scale})
    return define(made, names={"plural": "rollouts", "kind": "Rollout", "shortNames": ["ro"]})


@pytest.fixture
def monitor(define: Define) -> Kind:
    return define(version(MONITOR), names={"plural": "servicemonitors", "kind": "ServiceMonitor"})


def test_a_certificate(certificate: Kind) -> None:
    spec = {"secretName": "tls", "issuerRef": {"name": "ca"}, "dnsNames": ["example.com"], "privateKey": {"size": 256}}
    made = certificate.post("web", spec=spec)
    assert made.status == 201, made.message
    assert made.json["spec"] == {
        **spec,
        "issuerRef": {"name": "ca", "kind": "Issuer"},
        "duration": "2160h",
        "usages": ["digital signature", "key encipherment"],
        "privateKey": {"size": 256, "rotationPolicy": "Always"},
    }
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    assert certificate.patch({"status": {"conditions": [ready]}}, "web", sub="/status").status == 200
    table = certificate.client.get(certificate.path(), Accept="application/json;as=Table;g=meta.k8s.io;v=v1").json
    assert table["rows"][0]["cells"][:4] == ["web", "True", "tls", "ca"]


CERTIFICATES: list[tuple[dict[str, Any], str]] = [
    ({"secretName": "x", "issuerRef": {"name": "ca"}}, "spec: Invalid value: a name is needed"),
    ({"secretName": "", "issuerRef": {"name": "ca"}, "commonName": "a"}, "should be at least 1 chars long"),
    ({"secretName": "x", "issuerRef": {}, "commonName": "a"}, "spec.issuerRef.name: Required value"),
    (
        {"secretName": "x", "issuerRef": {"name": "ca"}, "commonName": "a", "usages": ["fun"]},
        'spec.usages[0]: Unsupported value: "fun"',
    ),
    (
        {"secretName": "x", "issuerRef": {"name": "ca"}, "commonName": "a", "keystores": {"jks": {"create": True}}},
        "spec.keystores.jks.passwordSecretRef: Required value",
    ),
]


@pytest.mark.parametrize(("spec", "message"), CERTIFICATES)
def test_bad_certificates(certificate: Kind, spec: dict[str, Any], message: str) -> None:
    answer = certificate.post("web", spec=spec)
    assert (answer.status, message in answer.message) == (422, True), answer.message


TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i", "env": [{"x": 1}]}]},
}


def test_a_rollout(rollout: Kind) -> None:
    steps = [{"setWeight": 20}, {"pause": {"duration": "1h"}}, {"pause": {"duration": 30}}, {"pause": {}}]
    made = rollout.post(spec={"template": TEMPLATE, "strategy": {"canary": {"maxSurge": "25%", "steps": steps}}})
    assert made.status == 201, made.message
    assert made.json["spec"]["template"] == TEMPLATE, "what the pod's schema does not say is kept"
    assert made.json["spec"]["replicas"] == 1
    assert rollout.client.patch(rollout.path("a") + "/scale", {"spec": {"replicas": 5}}).json["spec"] == {"replicas": 5}
    two: dict[str, Any] = {"canary": {}, "blueGreen": {"activeService": "x"}}
    refused = rollout.patch({"spec": {"strategy": two}})
    assert (
        '"spec.strategy" must validate one and only one schema (oneOf). Found 2 valid alternatives' in refused.message
    )
    assert (
        "spec.strategy.canary.steps[0].setWeight"
        in rollout.patch({"spec": {"strategy": {"canary": {"steps": [{"setWeight": 101}]}}}}).message
    )


def test_a_service_monitor(monitor: Kind) -> None:
    endpoint = {"port": "web", "interval": "30s", "relabelings": [{"sourceLabels": ["a"]}], "params": {"m": ["1", "2"]}}
    made = monitor.post(spec={"selector": {"matchLabels": {"a": "b"}}, "endpoints": [endpoint]})
    assert made.status == 201, made.message
    assert made.json["spec"]["endpoints"][0]["relabelings"] == [{"sourceLabels": ["a"], "action": "replace"}]
    bad = {**endpoint, "interval": "soon", "targetPort": True, "relabelings": [{"sourceLabels": ["1x"]}]}
    refused = monitor.post("bad", spec={"selector": {}, "endpoints": [bad]})
    fields = {each["field"] for each in refused.json["details"]["causes"]}
    assert {"spec.endpoints[0].interval", "spec.endpoints[0].relabelings[0].sourceLabels[0]"} <= fields
    assert "spec.endpoints[0].targetPort" in fields
