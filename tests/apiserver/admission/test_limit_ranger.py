"""LimitRanger: defaults and bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from apiserver.admission.conftest import Play

from pybernetes.api.core.v1 import Container, LimitRange, LimitRangeItem, LimitRangeSpec, Pod, PodSpec
from pybernetes.api.errors import Forbidden
from pybernetes.apiserver.admission import limit_ranger
from pybernetes.apiserver.admission.plugin import CREATE


def test_answers_as_upstream(play: Play) -> None:
    play("limit_ranger")


def test_what_is_added_to_a_pod_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 limit ranges of 500 defaults and a pod with 300 containers held up the server for 2.7 s."""
    default = {f"example.com/{number}": "1" for number in range(100)}
    ranges = [LimitRange(spec=LimitRangeSpec(limits=[LimitRangeItem(type="Container", default=default)]))] * 3
    monkeypatch.setattr(limit_ranger.LimitRanger, "_ranges", lambda *_: ranges)
    monkeypatch.setattr(limit_ranger, "MAX_ADDED", 200)
    plugin: Any = object.__new__(limit_ranger.LimitRanger)

    def admit(containers: int) -> Pod:
        pod = Pod(spec=PodSpec(containers=[Container(name=f"c{number}") for number in range(containers)]))
        resource = SimpleNamespace(plural="pods", group="", kind="Pod")
        plugin.admit(
            SimpleNamespace(new=pod, resource=resource, requested=resource, operation=CREATE, name="a", namespace="b")
        )
        return pod

    pod = admit(2)
    assert pod.spec is not None
    assert [len(each.resources.limits) for each in pod.spec.containers or ()] == [100, 100]  # type: ignore[union-attr, arg-type]
    with pytest.raises(Forbidden, match="would add more than 200 requests and limits"):
        admit(3)
