"""What is counted of authorization and admission, in upstream's names."""

from __future__ import annotations

from apiserver.authz.conftest import User, check
from apiserver.client import Client


def value(client: Client, series: str) -> float:
    lines = check(client.get("/metrics"), 200).body.decode().splitlines()
    found = [line.rpartition(" ")[2] for line in lines if line.startswith(f"{series} ")]
    return float(found[0]) if found else 0.0


def test_decisions_are_counted_by_who_made_them(admin: Client) -> None:
    allowed = 'apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"}'
    unknown = 'authorization_attempts_total{result="no-opinion"}'
    taken = 'authorization_duration_seconds_count{result="allowed"}'
    before = [value(admin, each) for each in (allowed, unknown, taken)]
    somebody = User(admin.server, "counted")
    check(somebody.get("/version"), 200)
    check(somebody.get("/api/v1/secrets"), 403)
    after = [value(admin, each) for each in (allowed, unknown, taken)]
    grown = [now - then for now, then in zip(after, before, strict=True)]
    assert grown[:2] == [1, 1]
    assert grown[2] >= 1


def test_admission_is_counted_by_step_and_plugin(admin: Client, place: str) -> None:
    step = 'apiserver_admission_step_admission_duration_seconds_count{{operation="CREATE",rejected="{}",type="{}"}}'
    plugin = (
        "apiserver_admission_controller_admission_duration_seconds_count"
        '{name="NamespaceLifecycle",operation="CREATE",rejected="true",type="admit"}'
    )
    names = [step.format("false", "admit"), step.format("false", "validate"), step.format("true", "admit"), plugin]
    before = [value(admin, each) for each in names]
    check(admin.post(f"/api/v1/namespaces/{place}/configmaps", {"metadata": {"name": "a"}}), 201)
    check(admin.post("/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}}), 404)
    grown = [value(admin, each) - then for each, then in zip(names, before, strict=True)]
    assert grown[0] >= 1
    assert grown[1] >= 1
    assert grown[2:] == [1, 1]
