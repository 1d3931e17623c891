"""What a simulated pod shall do: annotations of the pod, above rules of a file, above doing nothing but run. Pure.

The annotations, each also for one container alone (`simulated.pybernetes.io/run-for.CONTAINER`):

    simulated.pybernetes.io/pull-for: 2s       how long pulling the image takes; `never` = it cannot be pulled
    simulated.pybernetes.io/start-after: 1s    how long a container takes to start
    simulated.pybernetes.io/ready-after: 5s    how long a running container takes to be ready; `never`
    simulated.pybernetes.io/run-for: 30s       how long it runs before it ends by itself; `forever`
    simulated.pybernetes.io/exit-code: "1"     how it ends then (the default is 0)
    simulated.pybernetes.io/exit-reason: OOMKilled
    simulated.pybernetes.io/stop-after: 500ms  how long it takes to end when it is told to, at most its grace period
    simulated.pybernetes.io/cpu: 250m          what it uses (the default is what it requests)
    simulated.pybernetes.io/memory: 64Mi

Where nothing is said, init containers and the pods of Jobs end at once and well, and all others run for ever.

A file has the same settings for many pods (YAML or JSON); the first rule that fits a pod and has a setting counts:

    rules:
    - namespace: batch                  # all of these may be left out; names are shell patterns
      name: "import-*"
      labels: {app: import}
      settings: {run-for: 10s, exit-code: 0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Pod
from pybernetes.api.quantity import Quantity, parse
from pybernetes.api.times import parse_duration

PREFIX: Final = "simulated.pybernetes.io/"
_TIMES: Final = ("pull-for", "start-after", "ready-after", "run-for", "stop-after")
_QUANTITIES: Final = ("cpu", "memory")
SETTINGS: Final = (*_TIMES, "exit-code", "exit-reason", *_QUANTITIES)
NEVER: Final = math.inf


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one container does. Times are seconds; infinity = never, for ever."""

    pull_for: float = 0.0
    start_after: float = 0.0
    ready_after: float = 0.0
    run_for: float = NEVER
    stop_after: float = 0.0
    exit_code: int = 0
    exit_reason: str = ""
    cpu: Quantity | None = None
    memory: Quantity | None = None

    @property
    def reason(self) -> str:
        """The reason of its end, in the runtime's words."""
        return self.exit_reason or ("Error" if self.exit_code else "Completed")


@dataclass(frozen=True, slots=True)
class Rule:
    """Settings for the pods that fit."""

    namespace: str = "*"
    name: str = "*"
    labels: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def fits(self, pod: Pod) -> bool:
        """Whether it is about this pod."""
        metadata = pod.metadata
        assert metadata is not None
        labels = metadata.labels or {}
        return (
            fnmatchcase(metadata.namespace or "", self.namespace)
            and fnmatchcase(metadata.name or "", self.name)
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


def behaviour(pod: Pod, container: str, rules: Sequence[Rule]) -> tuple[Behaviour, list[str]]:
    """What the container of this pod does, and what is wrong with what was wished."""
    found: dict[str, Any] = {"run_for": 0.0} if _ends_by_itself(pod, container) else {}
    problems: list[str] = []
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    fitting = [rule.settings for rule in rules if rule.fits(pod)]
    for name in SETTINGS:
        wishes: list[tuple[str, Mapping[str, str]]] = [
            (PREFIX + f"{name}.{container}", annotations),
            (PREFIX + name, annotations),
        ]
        wishes += [(key, settings) for settings in fitting for key in (f"{name}.{container}", name)]
        for key, source in wishes:
            if key not in source:
                continue
            try:
                found[name.replace("-", "_")] = _value(name, source[key])
                break
            except ValueError as error:
                problems.append(f"{key}: {error}")
    return Behaviour(**found), problems


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
    names = [key.removeprefix(PREFIX) for key in (pod.metadata and pod.metadata.annotations) or () if _ours(key)]
    containers = {each.name for each in (pod.spec and pod.spec.containers) or ()}
    containers |= {each.name for each in (pod.spec and pod.spec.init_containers) or ()}
    known = {*SETTINGS, *(f"{name}.{container}" for name in SETTINGS for container in containers)}
    return [f"{PREFIX}{name}: there is no such setting, or no such container" for name in names if name not in known]


def read_rules(content: Any) -> list[Rule]:
    """The rules of a file. Raises ValueError, saying where."""
    if not isinstance(content, dict) or not isinstance(content.get("rules"), list) or set(content) != {"rules"}:
        raise ValueError("a file of rules has a list `rules`, and nothing else")
    return [_rule(each, f"rules[{index}]") for index, each in enumerate(content["rules"])]


def _rule(content: Any, where: str) -> Rule:
    if not isinstance(content, dict):
        raise ValueError(f"{where}: must be an object")
    extra = set(content) - {"namespace", "name", "labels", "settings"}
    if extra:
        raise ValueError(f"{where}: unknown field {sorted(extra)[0]!r}")
    for name in ("namespace", "name"):
        if not isinstance(content.get(name, ""), str):
            raise ValueError(f"{where}.{name}: must be text")
    for name in ("labels", "settings"):
        if not isinstance(content.get(name, {}), dict):
            raise ValueError(f"{where}.{name}: must be an object")
    settings = {str(key): str(value) for key, value in content.get("settings", {}).items()}
    for key, value in settings.items():
        name = key.partition(".")[0]
        if name not in SETTINGS:
            raise ValueError(f"{where}.settings: there is no setting {key!r}")
        try:
            _value(name, value)
        except ValueError as error:
            raise ValueError(f"{where}.settings.{key}: {error}") from None
    labels = {str(key): str(value) for key, value in content.get("labels", {}).items()}
    return Rule(content.get("namespace", "*"), content.get("name", "*"), labels, settings)


def _value(name: str, text: str) -> Any:
    if name in _TIMES:
        if text in ("never", "forever"):
            return NEVER
        seconds = parse_duration(text) / 1e9
        if seconds < 0:
            raise ValueError(f"a time cannot be negative: {text}")
        return seconds
    if name in _QUANTITIES:
        quantity = parse(text)
        if quantity.sign() < 0:
            raise ValueError(f"must not be negative: {text}")
        return quantity
    if name == "exit-code":
        if not text.isdecimal() or int(text) > 255:
            raise ValueError(f"not an exit code (0 to 255): {text!r}")
        return int(text)
    return text


def _ours(key: str) -> bool:
    return key.startswith(PREFIX)
