"""What happens to a CertificateSigningRequest after the first decision; the first is in the recorded cases."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from cases import NOW, USER

from pybernetes.api import scheme
from pybernetes.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from pybernetes.apiserver.registry.registry import strategy_for
from pybernetes.apiserver.registry.strategy import Context, Strategy

CASES = yaml.safe_load(
    (Path(__file__).parent / "cases" / "certificates" / "certificatesigningrequest.yaml").read_text()
)
CERTIFICATE = next(case for case in CASES["cases"] if case["name"] == "signed")["edit"]["status/certificate"]
EARLIER = "2023-01-01T00:00:00Z"


@pytest.fixture
def strategy() -> Strategy:
    resource = scheme.resource_for_kind("certificates.k8s.io", "v1", "CertificateSigningRequest")
    assert resource is not None
    return strategy_for(resource)


@pytest.fixture
def context() -> Context:
    return Context(None, USER, NOW)  # type: ignore[arg-type]


@pytest.fixture
def stored(strategy: Strategy, context: Context) -> Any:
    obj = msgspec.convert(CASES["base"], CertificateSigningRequest)
    strategy.default(obj)
    strategy.prepare_for_create(obj, context)
    assert not strategy.validate(obj, context)
    return obj


def condition(kind: str, **more: str) -> CertificateSigningRequestCondition:
    return CertificateSigningRequestCondition(type=kind, status="True", **more)


def change(strategy: Strategy, context: Context, subresource: str, new: Any, old: Any) -> list[str]:
    prepare, validate = strategy.rules(subresource)
    prepare(new, old, context)
    return [error.message() for error in validate(new, old, context)]


def test_a_condition_without_times_gets_the_time_of_the_request(
    strategy: Strategy, context: Context, stored: Any
) -> None:
    new = deepcopy(stored)
    new.status.conditions = [condition("Approved")]
    assert change(strategy, context, "approval", new, stored) == []
    assert new.status.conditions[0].last_update_time == NOW
    assert new.status.conditions[0].last_transition_time == NOW


def test_a_condition_that_held_before_keeps_the_time_of_its_transition(
    strategy: Strategy, context: Context, stored: Any
) -> None:
    stored.status.conditions = [condition("Approved", last_transition_time=EARLIER, last_update_time=EARLIER)]
    new = deepcopy(stored)
    new.status.conditions = [condition("Approved", reason="again")]
    assert change(strategy, context, "approval", new, stored) == []
    assert new.status.conditions[0].last_update_time == NOW
    assert new.status.conditions[0].last_transition_time == EARLIER


@pytest.mark.parametrize("kind", ["Approved", "Denied", "Failed"])
def test_a_decision_cannot_be_taken_back(strategy: Strategy, context: Context, stored: Any, kind: str) -> None:
    stored.status.conditions = [condition(kind)]
    new = deepcopy(stored)
    new.status.conditions = None
    assert change(strategy, context, "approval", new, stored) == [
        f'status.conditions: Forbidden: updates may not remove a condition of type "{kind}"'
    ]


def test_the_signer_cannot_reword_a_decision(strategy: Strategy, context: Context, stored: Any) -> None:
    stored.status.conditions = [condition("Approved", reason="mine")]
    new = deepcopy(stored)
    new.status.conditions[0].reason = "yours"
    assert change(strategy, context, "status", new, stored) == []
    assert new.status.conditions[0].reason == "mine"


def test_a_certificate_is_issued_once(strategy: Strategy, context: Context, stored: Any) -> None:
    stored.status.certificate = CERTIFICATE
    new = deepcopy(stored)
    new.status.certificate = None
    assert change(strategy, context, "status", new, stored) == [
        "status.certificate: Forbidden: updates may not modify existing certificate content"
    ]


def test_what_is_stored_already_is_tolerated(strategy: Strategy, context: Context, stored: Any) -> None:
    stored.spec.usages = ["client auth", "client auth", "fun"]
    stored.spec.signer_name = "kubernetes.io/legacy-unknown"
    stored.status.certificate = "aGVsbG8="
    stored.status.conditions = [condition(kind) for kind in ("Approved", "Denied", "", "")]
    assert change(strategy, context, "", deepcopy(stored), stored) == []
