"""What simulated containers say and wait for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pybernetes.api.core.v1 import Pod
from pybernetes.client.codec import decode
from pybernetes.kubelet.simulated.answers import Command, Log, read_commands, read_ports
from pybernetes.kubelet.simulated.references import missing


def test_a_log_without_a_pause_is_written_at_the_start() -> None:
    log = Log(("a", "b {n}"))
    assert (log.count(-1), log.count(0), log.count(100)) == (0, 2, 2)
    assert [(each.age, each.text) for each in log.between(0, 2)] == [(0, "a"), (0, "b 2")]
    assert Log().count(5) == 0


def test_a_log_with_a_pause_goes_on_and_on() -> None:
    log = Log(("a {n}", "b"), 0.5)
    assert [log.count(age) for age in (0, 0.4, 0.5, 2)] == [1, 1, 2, 5]
    assert [(each.age, each.text) for each in log.between(1, 4)] == [(0.5, "b"), (1.0, "a 3"), (1.5, "b")]


def test_the_first_command_whose_pattern_fits_answers() -> None:
    commands = read_commands('[{"command": "cat *", "stdout": "x"}, {"command": "sh -c ?"}, {"exitCode": 2}]')
    assert commands[0] == Command("cat *", "x")
    assert [each.fits(["cat", "/etc/hosts"]) for each in commands] == [True, False, True]
    assert [each.fits(["sh", "-c", "a"]) for each in commands] == [False, True, True]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_commands, "{}"),
        (read_commands, '[{"comand": "x"}]'),
        (read_commands, '[{"exitCode": 256}]'),
        (read_commands, "[{"),
        (read_ports, '{"0": "x"}'),
        (read_ports, '{"http": "x"}'),
        (read_ports, '{"80": 1}'),
    ],
)
def test_what_makes_no_sense_is_refused(read: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(text)


def test_a_pod_waits_for_what_it_must_have_and_for_nothing_that_is_optional() -> None:
    projected = {"sources": [{"configMap": {"name": "p"}}, {"secret": {"name": "o", "optional": True}}]}
    volumes = [
        {"name": "a", "configMap": {"name": "there"}},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "projected": projected},
        {"name": "d", "configMap": {"name": "maybe", "optional": True}},
    ]
    env = [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "e", "key": "k"}}}]
    containers = [{"name": "x", "env": env}, {"name": "y", "envFrom": [{"secretRef": {"name": "f"}}]}, {"name": "z"}]
    body = {"metadata": {"name": "n", "namespace": "d"}, "spec": {"volumes": volumes, "containers": containers}}
    pod = decode(Pod, json.dumps(body).encode())
    found = missing(pod, lambda sort, namespace, name: (sort, namespace, name) == ("configmap", "d", "there"))
    assert found.volumes == {"b": 'secret "s" not found', "c": 'configmap "p" not found'}
    assert found.containers == {"x": 'configmap "e" not found', "y": 'secret "f" not found'}
    assert not missing(pod, lambda *_: True)
