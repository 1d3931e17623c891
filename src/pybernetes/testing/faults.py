"""Faults on demand in a test cluster: `with cluster.faults.refuse(409, verbs="update", resources="deployments"): ...`.

Each call makes a rule of `apiserver/fault_injection/rules.py` at the cluster's API server; that file has the fields and
what the actions do. A rule lasts until it is removed: by `remove()`, by the end of its `with` block, by `clear()`.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pybernetes.testing.client import Client

PATH = "/debug/faults"
NODES = "simulated.pybernetes.io"
"""Prefix of the annotations of simulated nodes (docs/simulated.md)."""
_LISTS = ("users", "user_agents", "verbs", "resources", "namespaces", "names")
_FIELDS = (*_LISTS, "name", "status", "seconds", "skip", "times", "probability")


class Fault:
    """One rule at the API server."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name

    @property
    def hits(self) -> int:
        """How often it has happened."""
        found = next((each for each in self._client.request("GET", PATH)["faults"] if each["name"] == self.name), None)
        return int(found["hits"]) if found else 0

    def remove(self) -> None:
        """Let it happen no more. Twice is once."""
        from pybernetes.api import errors

        try:
            self._client.request("DELETE", PATH, query={"name": self.name})
        except errors.NotFound:
            pass

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class NodeFault:
    """A fault of one simulated node, until it is removed."""

    def __init__(self, client: Client, name: str, annotations: dict[str, str]) -> None:
        self._client, self.name, self._annotations = client, name, annotations
        client.patch("nodes", name, {"metadata": {"annotations": annotations}})

    def remove(self) -> None:
        """Let the node be well again. Twice is once."""
        nothing = dict.fromkeys(self._annotations)
        self._client.patch("nodes", self.name, {"metadata": {"annotations": nothing}})

    def __enter__(self) -> NodeFault:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Faults:
    """The rules of one cluster.

    `which` chooses requests: `users`, `user_agents`, `verbs`, `resources`, `namespaces`, `names` (shell patterns, one
    or several), `skip`, `times`, `probability`, and the rule's own `name`. ValueError names a field that is wrong.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def refuse(self, status: int = 503, **which: Any) -> Fault:
        """Answer with an error: 409, 410, 429, 500, 503, 504 and so on."""
        return self.add("refuse", status=status, **which)

    def delay(self, seconds: float, **which: Any) -> Fault:
        """Let requests wait first, and watches get their events late."""
        return self.add("delay", seconds=seconds, **which)

    def drop(self, **which: Any) -> Fault:
        """End the connection instead of answering; nothing was done."""
        return self.add("drop", **which)

    def lose(self, **which: Any) -> Fault:
        """Do what was asked for, and end the connection instead of answering."""
        return self.add("lose", **which)

    def duplicate(self, **which: Any) -> Fault:
        """Do what was asked for twice."""
        return self.add("duplicate", **which)

    def hold(self, **which: Any) -> Fault:
        """Let requests wait until the rule is removed; with `verbs="watch"`, keep informers at what they know."""
        return self.add("hold", **which)

    def end_watches(self, **which: Any) -> int:
        """End the watches that run now; how many there were."""
        with self.add("end", **which) as rule:
            return rule.hits

    def expire_watches(self, **which: Any) -> Fault:
        """End the watches that run now, and answer 410 to the next one that wants to go on: it has to list again."""
        which.setdefault("verbs", "watch")
        which.setdefault("times", 1)
        rule = self.refuse(410, **which)
        self.end_watches(**{key: value for key, value in which.items() if key in _LISTS})
        return rule

    def node(self, name: str, *, off: bool = False, not_ready: str = "", pressure: str = "") -> NodeFault:
        """Let a simulated node be off, or say that it is not ready, or short of something (`DiskPressure` and so on).

        A slow one: `delay(seconds, users=f"system:node:{name}")`.
        """
        wanted = {"silent": "true" if off else "", "not-ready": not_ready, "pressure": pressure}
        if not any(wanted.values()):
            raise ValueError("a fault of a node is one of off, not_ready, pressure")
        return NodeFault(self._client, name, {f"{NODES}/{key}": value for key, value in wanted.items() if value})

    def add(self, action: str, **which: Any) -> Fault:
        """Add a rule."""
        if unknown := sorted(set(which) - set(_FIELDS)):
            raise ValueError(f"unknown field {unknown[0]!r} of a fault; there are {', '.join(sorted(_FIELDS))}")
        rule = {_camel(key): _values(value) if key in _LISTS else value for key, value in which.items()}
        return self._post({"action": action, **rule})[-1]

    def apply(self, content: str | os.PathLike[str] | dict[str, Any] | builtins.list[Any]) -> builtins.list[Fault]:
        """Add the rules of a file, of YAML text or of an object, `{faults: [...]}`."""
        import yaml

        if isinstance(content, str) and "\n" in content:
            content = yaml.safe_load(content)
        elif isinstance(content, str | os.PathLike):
            content = yaml.safe_load(Path(content).read_text())
        return self._post(content)

    def list(self) -> builtins.list[dict[str, Any]]:
        """The rules, each with `seen` and `hits`."""
        found: builtins.list[dict[str, Any]] = self._client.request("GET", PATH)["faults"]
        return found

    def clear(self) -> None:
        """Remove all rules."""
        self._client.request("DELETE", PATH)

    def _post(self, content: Any) -> builtins.list[Fault]:
        from pybernetes.api import errors

        before = {each["name"] for each in self.list()}
        try:
            found = self._client.request("POST", PATH, content)["faults"]
        except errors.BadRequest as error:
            raise ValueError(str(error)) from None
        return [Fault(self._client, each["name"]) for each in found if each["name"] not in before]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def _values(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
