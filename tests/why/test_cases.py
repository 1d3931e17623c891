"""`why` against prepared clusters: one file in `cases/broken` or `cases/healthy` each.

A case has the objects that are there, what is asked, the sentence that must appear (`why`), a line below it (`line`)
and the change that would help (`help`). Of a healthy cluster no cause may be given.
"""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
import yaml

from pybernetes.api.resources import RESOURCES
from pybernetes.trace.why.facts import Answer, Object
from pybernetes.trace.why.kinds import explain

CASES = Path(__file__).with_name("cases")
KINDS = {each.kind: each for each in RESOURCES if each.kind != "Event" or not each.group}
BROKEN = sorted(path.stem for path in CASES.glob("broken/*.yaml"))
HEALTHY = sorted(path.stem for path in CASES.glob("healthy/*.yaml"))


class Prepared:
    """A client of a cluster with just these objects."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.logs = case.get("logs") or {}
        for each in copy.deepcopy(case["objects"]):
            resource = KINDS.get(each["kind"])
            each.setdefault("apiVersion", resource.api_version if resource else "")
            each.setdefault("spec", {})
            plural = resource.plural if resource else each["kind"].lower() + "s"
            namespaced = resource.namespaced if resource else True
            namespace = each["metadata"].setdefault("namespace", "default") if namespaced else ""
            self.objects[plural, namespace, each["metadata"]["name"]] = each

    async def get(self, path: str) -> Any:
        """An object, or a list."""
        path, _, query = path.partition("?")
        parts = path.strip("/").split("/")[2 if path.startswith("/api/") else 3 :]
        namespace, parts = (parts[1], parts[2:]) if parts[0] == "namespaces" and len(parts) > 2 else ("", parts)
        if len(parts) == 2:
            return self.objects.get((parts[0], namespace, unquote(parts[1])))
        found = [each for (of, place, _), each in self.objects.items() if of == parts[0] and namespace in ("", place)]
        for term in filter(None, dict(parse_qsl(query)).get("fieldSelector", "").split(",")):
            key, _, value = term.removeprefix("involvedObject.").partition("=")
            found = [each for each in found if each["involvedObject"][key] == value]
        return {"items": found}

    async def log(self, path: str) -> str | None:
        """The log of a container."""
        path, _, query = path.partition("?")
        return str((self.logs.get(path.split("/")[-2]) or {}).get(dict(parse_qsl(query))["container"], ""))


def answer_of(case: dict[str, Any]) -> Answer:
    cluster = Prepared(case)
    kind, _, name = case["ask"].partition("/")
    (thing,) = (each for each in cluster.objects.values() if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return asyncio.run(explain(cluster, thing))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_cluster_is_explained(name: str) -> None:
    case = yaml.safe_load((CASES / "broken" / f"{name}.yaml").read_text())
    answer = answer_of(case)
    assert case["why"] in answer.sentence
    assert not answer.healthy
    assert case.get("help", "") in answer.fix
    assert any(case.get("line", "") in each for each in (*answer.details, ""))


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_cluster_has_no_cause(name: str) -> None:
    answer = answer_of(yaml.safe_load((CASES / "healthy" / f"{name}.yaml").read_text()))
    assert answer.healthy, answer.sentence


def test_there_are_as_many_as_promised() -> None:
    assert len(BROKEN) >= 60
    assert len(HEALTHY) >= 20
