"""EventRateLimit: buckets that fill with time, and a configuration that must be there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pybernetes.api.core.v1 import Event
from pybernetes.api.errors import TooManyRequests
from pybernetes.api.resources import RESOURCES
from pybernetes.apiserver.admission.event_rate_limit import EventRateLimit, read_configuration
from pybernetes.apiserver.admission.plugin import CREATE, Attributes
from pybernetes.apiserver.user import User

EVENTS = next(each for each in RESOURCES if each.fullname == "events")
HEAD = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration"}


class Server:
    """A plugin with one limit, and a clock that stands still."""

    def __init__(self, **limit: Any) -> None:
        self.now = 0.0
        registry: Any = None
        self._plugin = EventRateLimit(registry, {**HEAD, "limits": [limit]}, clock=lambda: self.now)

    def admits(self, namespace: str = "a", user: str = "u", dry_run: bool = False) -> bool:
        attributes = Attributes(CREATE, EVENTS, "", namespace, "e", Event(), None, User(user), dry_run, [])
        try:
            self._plugin.validate(attributes)
        except TooManyRequests:
            return False
        return True


def test_a_burst_and_then_so_many_a_second() -> None:
    server = Server(type="Server", qps=2, burst=3)
    assert [server.admits() for _ in range(5)] == [True, True, True, False, False]
    server.now = 1.0
    assert [server.admits() for _ in range(3)] == [True, True, False]
    server.now = 100.0
    assert [server.admits() for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(("kind", "other"), [("Namespace", {"namespace": "b"}), ("User", {"user": "v"})])
def test_every_namespace_or_user_has_a_bucket(kind: str, other: dict[str, str]) -> None:
    server = Server(type=kind, qps=1, burst=1)
    assert server.admits()
    assert not server.admits()
    assert server.admits(**other)


def test_what_is_forgotten_has_a_full_bucket_again() -> None:
    server = Server(type="Namespace", qps=1, burst=1, cacheSize=2)
    assert server.admits("a")
    assert server.admits("b")
    assert server.admits("c")
    assert server.admits("a")
    assert not server.admits("c")


def test_a_dry_run_costs_nothing() -> None:
    server = Server(type="Server", qps=1, burst=1)
    assert all(server.admits(dry_run=True) for _ in range(5))


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (None, "limits: Invalid value: null: must not be empty"),
        ({**HEAD, "limits": [{"type": "Nix", "qps": 1, "burst": 1}]}, 'limits[0].type: Unsupported value: "Nix"'),
        ({**HEAD, "limits": [{"type": "User", "qps": 0, "burst": 1}]}, "limits[0].qps: Invalid value: 0"),
        ({**HEAD, "limits": [{"type": "User", "qps": 1, "burst": -1}]}, "limits[0].burst: Invalid value: -1"),
        ({"kind": "Other"}, 'no kind "Other" is registered'),
        ({**HEAD, "limits": "all"}, "Expected `array`"),
    ],
)
def test_a_bad_configuration_is_refused(document: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read_configuration(document)
