"""Reads the behaviour of a simulated pod or node: annotations, then rules of a file, then the defaults. Pure.

Both may change at any time: from then on it behaves in the new way, and what is past stays as it was.

Annotations of pods, each also for one container alone (`simulated.pybernetes.io/run-for.CONTAINER`):

    simulated.pybernetes.io/pull-for: 2s       how long pulling the image takes; `never` = it cannot be pulled
    simulated.pybernetes.io/start-after: 1s    how long a container takes to start
    simulated.pybernetes.io/ready-after: 5s    how long a running container takes to be ready; `never`
    simulated.pybernetes.io/readiness-probe: failure
    simulated.pybernetes.io/liveness-probe: 30s=failure
    simulated.pybernetes.io/startup-probe: 0s=failure, 10s=success
                                               what its probes, if it has such, are answered: always `success` or
                                               `failure`, or from which age on (`probing.py`)
    simulated.pybernetes.io/run-for: 30s       how long it runs before it ends by itself; `forever`
    simulated.pybernetes.io/exit-code: "1"     how it ends then (the default is 0)
    simulated.pybernetes.io/exit-reason: Error
    simulated.pybernetes.io/stop-after: 500ms  how long it takes to end when it is stopped, at most its grace period
    simulated.pybernetes.io/post-start: 2s     how long its hooks, if it has such, take: a time, `failure`, or both
    simulated.pybernetes.io/pre-stop: 2s, failure
    simulated.pybernetes.io/cpu: 250m          what it uses: a value, a range or a curve (`curves.py`); never more CPU
    simulated.pybernetes.io/memory: 64Mi       than its limit, and OOMKilled when it has more memory than that
    simulated.pybernetes.io/log: "hello {n}"   lines that it writes when it starts; `{n}` is the line's number
    simulated.pybernetes.io/log-every: 1s      one line after the other with such a pause, again and again
    simulated.pybernetes.io/exec: '[{"command": "cat *", "stdout": "x\\n"}]'
                                               what commands answer: patterns, stdout, stderr, exitCode, echo (of stdin)
    simulated.pybernetes.io/ports: '{"80": "hello"}'
                                               what HTTP clients get that come by a forwarded port

Where nothing is said, init containers and the pods of Jobs end at once and well, and all others run for ever, use what
they request, and say nothing.

Annotations of nodes:

    simulated.pybernetes.io/silent: "true"     as if its machine were off: no heartbeats, no reports, no answers
    simulated.pybernetes.io/not-ready: text    the node is not ready, for this reason
    simulated.pybernetes.io/pressure: MemoryPressure,DiskPressure,PIDPressure

A file has the same settings for many (YAML or JSON); the first rule that fits and has a setting counts:

    rules:
    - namespace: batch                  # all of these may be left out; names are shell patterns
      name: "import-*"
      labels: {app: import}
      settings: {run-for: 10s, exit-code: 0}
    nodes:
    - name: "sim-000[1-3]"
      labels: {topology.kubernetes.io/zone: a}
      settings: {silent: true}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

import msgspec

from pybernetes.api.base import Kind
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Node, Pod

from .settings import NODE_READERS, READERS, Behaviour, NodeBehaviour, field_of

PREFIX: Final = "simulated.pybernetes.io/"
_PROBES: Final = {f"{each}-probe": f"{each}_probe" for each in ("startup", "readiness", "liveness")}
"""Settings that are for containers with such a field only."""
_REMEMBERED: Final = 4096
"""Behaviours that are kept: the pods of a controller have the same."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Settings for the pods or nodes that fit."""

    namespace: str = "*"
    name: str = "*"
    labels: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def fits(self, obj: Kind) -> bool:
        """Whether it is about this one."""
        metadata = obj.metadata
        assert metadata is not None
        labels = metadata.labels or {}
        return (
            fnmatchcase(metadata.namespace or "", self.namespace)
            and fnmatchcase(metadata.name or "", self.name)
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """The content of a rules file."""

    pods: Sequence[Rule] = ()
    nodes: Sequence[Rule] = ()


def behaviour(pod: Pod, container: str, rules: Sequence[Rule]) -> tuple[Behaviour, Sequence[str]]:
    """The behaviour of this pod's container, and the errors in its settings."""
    given: list[tuple[str, str]] = []
    sources = _sources(pod, rules)
    if sources:
        for name in READERS:
            given += [
                (prefix + key, settings[prefix + key])
                for prefix, settings in sources
                for key in (f"{name}.{container}", name)
                if prefix + key in settings
            ]
    return _behaviour(tuple(given), _ends_by_itself(pod, container))


def node_behaviour(node: Node, rules: Sequence[Rule]) -> tuple[NodeBehaviour, Sequence[str]]:
    """The behaviour of a node, and the errors in its settings."""
    sources = _sources(node, rules)
    given = [
        (prefix + name, settings[prefix + name])
        for name in NODE_READERS
        for prefix, settings in sources
        if prefix + name in settings
    ]
    return _node_behaviour(tuple(given))


def _sources(obj: Kind, rules: Sequence[Rule]) -> list[tuple[str, Mapping[str, str]]]:
    """Where settings of a pod or node may be found, the more important first, and how their keys begin there."""
    annotations = (obj.metadata.annotations if obj.metadata else None) or {}
    ours = {key: value for key, value in annotations.items() if key.startswith(PREFIX)}
    fitting: list[tuple[str, Mapping[str, str]]] = [("", rule.settings) for rule in rules if rule.fits(obj)]
    return [(PREFIX, ours), *fitting] if ours else fitting


def same_settings(before: Pod, now: Pod) -> bool:
    """Whether two versions of a pod have the same settings: its annotations, and the labels that rules select by."""
    assert before.metadata is not None
    assert now.metadata is not None
    return (before.metadata.annotations, before.metadata.labels) == (now.metadata.annotations, now.metadata.labels)


@lru_cache(_REMEMBERED)
def _behaviour(given: tuple[tuple[str, str], ...], ends_by_itself: bool) -> tuple[Behaviour, Sequence[str]]:
    values, problems = _values(given, READERS)
    return Behaviour(**({"run_for": 0.0} if ends_by_itself else {}) | values), problems


@lru_cache(_REMEMBERED)
def _node_behaviour(given: tuple[tuple[str, str], ...]) -> tuple[NodeBehaviour, Sequence[str]]:
    values, problems = _values(given, NODE_READERS)
    return NodeBehaviour(**values), problems


def _values(
    given: tuple[tuple[str, str], ...], readers: Mapping[str, Callable[[str], Any]]
) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    problems = []
    for key, text in given:
        name = key.removeprefix(PREFIX).partition(".")[0]
        if field_of(name) in values:
            continue
        try:
            values[field_of(name)] = readers[name](text)
        except ValueError as error:
            problems.append(f"{key}: {error}")
    return values, problems


def _ends_by_itself(pod: Pod, container: str) -> bool:
    """Whether a container is of the sort that is there to end."""
    inits = (pod.spec.init_containers if pod.spec else None) or ()
    found = next((each for each in inits if each.name == container), None)
    if found is not None:
        return not is_sidecar(found)
    owners = (pod.metadata.owner_references if pod.metadata else None) or ()
    return any(each.kind == "Job" and each.controller for each in owners)


def unknown(pod: Pod) -> list[str]:
    """Annotations of ours that mean nothing."""
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    names = [key.removeprefix(PREFIX) for key in annotations if key.startswith(PREFIX)]
    if not names or pod.spec is None:
        return []
    containers = {each.name or "": each for each in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))}
    found = []
    for name in names:
        setting, dot, one = name.partition(".")
        if setting not in READERS or (dot and one not in containers):
            found.append(f"{PREFIX}{name}: there is no such setting, or no such container")
            continue
        concerned = [containers[one]] if dot else containers.values()
        if setting in _PROBES and not any(getattr(each, _PROBES[setting]) for each in concerned):
            found.append(f"{PREFIX}{name}: there is no such probe")
    return found


def read_rules(content: Any) -> Rules:
    """The rules of a file. Raises ValueError, saying where."""
    what = "a file of rules has lists `rules` (of pods) and `nodes`, and nothing else"
    if not isinstance(content, dict):
        raise ValueError(what)
    for name, each in content.items():
        if name not in ("rules", "nodes"):
            raise ValueError(f"unknown field {name!r}: {what}")
        if not isinstance(each, list):
            raise ValueError(f"{name}: must be a list")
    pods = [_rule(each, f"rules[{index}]", READERS) for index, each in enumerate(content.get("rules", ()))]
    nodes = [_rule(each, f"nodes[{index}]", NODE_READERS) for index, each in enumerate(content.get("nodes", ()))]
    return Rules(pods, nodes)


def _rule(content: Any, where: str, readers: Mapping[str, Callable[[str], Any]]) -> Rule:
    if not isinstance(content, dict):
        raise ValueError(f"{where}: must be an object")
    known = {"name", "labels", "settings"} | ({"namespace"} if readers is READERS else set())
    extra = set(content) - known
    if extra:
        raise ValueError(f"{where}: unknown field {sorted(extra)[0]!r}")
    for name in ("namespace", "name"):
        if not isinstance(content.get(name, ""), str):
            raise ValueError(f"{where}.{name}: must be text")
    for name in ("labels", "settings"):
        if not isinstance(content.get(name, {}), dict):
            raise ValueError(f"{where}.{name}: must be an object")
    settings = {str(key): _text(value) for key, value in content.get("settings", {}).items()}
    for key, value in settings.items():
        name = key.partition(".")[0]
        if name not in readers:
            raise ValueError(f"{where}.settings: there is no setting {key!r}")
        try:
            readers[name](value)
        except ValueError as error:
            raise ValueError(f"{where}.settings.{key}: {error}") from None
    for key, value in content.get("labels", {}).items():
        if value is None or isinstance(value, dict | list):
            raise ValueError(f"{where}.labels.{key}: must be text")
    labels = {str(key): _text(value) for key, value in content.get("labels", {}).items()}
    return Rule(content.get("namespace", "*"), content.get("name", "*"), labels, settings)


def _text(value: Any) -> str:
    """A value as an annotation would have it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
