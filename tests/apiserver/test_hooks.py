"""The steps of the start, as health checks."""

from __future__ import annotations

import pytest

from pybernetes.apiserver.health import Health
from pybernetes.apiserver.hooks import Hooks, Step


async def test_a_check_is_not_ok_before_its_step_is_done() -> None:
    health = Health()
    hooks = Hooks(health, flows=True)
    for path in ("healthz", "livez", "readyz"):
        check = health.checks[path]["poststarthook/rbac/bootstrap-roles"]
        with pytest.raises(RuntimeError, match="not yet: the default roles are there"):
            await check()
    hooks.done(Step.ROLES)
    await health.checks["readyz"]["poststarthook/rbac/bootstrap-roles"]()
    with pytest.raises(RuntimeError):
        await health.checks["readyz"]["autoregister-completion"]()


async def test_livez_believes_in_what_has_yet_to_start_for_its_grace_period() -> None:
    health, now = Health(), [100.0]
    Hooks(health, flows=True, grace=5.0, clock=lambda: now[0])
    name = "poststarthook/rbac/bootstrap-roles"
    await health.checks["livez"][name]()
    for path in ("healthz", "readyz"):
        with pytest.raises(RuntimeError):
            await health.checks[path][name]()
    now[0] = 105.0
    with pytest.raises(RuntimeError):
        await health.checks["livez"][name]()


def test_what_is_switched_off_is_not_waited_for() -> None:
    health = Health()
    Hooks(health, flows=False)
    assert not [name for name in health.checks["readyz"] if "fairness" in name]
