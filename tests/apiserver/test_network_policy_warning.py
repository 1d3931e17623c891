"""A NetworkPolicy that no network enforces carries a warning."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.core.validation.capabilities import CAPABILITIES
from pybernetes.api.networking.v1 import NetworkPolicy
from pybernetes.apiserver.strategies import networking


@pytest.mark.parametrize("enforced", [True, False])
def test_a_cluster_that_does_not_enforce_policies_says_so_on_create(
    enforced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CAPABILITIES, "enforces_network_policy", enforced)
    policy = msgspec.convert({"metadata": {"name": "p"}, "spec": {"podSelector": {}}}, NetworkPolicy)
    strategy: Any = object.__new__(networking.NetworkPolicyStrategy)
    assert strategy.warnings_on_create(policy, None) == ([] if enforced else [networking.NOT_ENFORCED])
