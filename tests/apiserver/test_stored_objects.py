"""What others put into the store: fields of a later version, wrong types, bytes that are no object.

Each concerns its own object at most. Requests are judged as ever: unknown fields in them are reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.client import Client
from store.tools import Etcd

import tools
from pybernetes.store import open_store
from pybernetes.store.base import Store

FLOW = "/registry/flowschemas/"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(params=["sqlite", "etcd"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that outlives its server."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/store.db"
    etcd: Etcd = request.getfixturevalue("own_etcd")
    return etcd.url


async def _with_store(url: str, work: Callable[[Store], Any]) -> None:
    store = open_store(url)
    await store.start()
    try:
        await work(store)
    finally:
        await store.close()


def put(url: str, key: str, value: bytes) -> None:
    """Write a value as another program would."""

    async def work(store: Store) -> None:
        present = await store.get(key)
        if present is None:
            await store.create(key, value)
        else:
            await store.update(key, value, revision=present.revision)

    asyncio.run(_with_store(url, work))


def change(url: str, key: str, change: Change) -> None:
    """Change a stored object."""

    async def work(store: Store) -> None:
        present = await store.get(key)
        assert present is not None, key
        document = json.loads(present.value)
        change(document)
        value = json.dumps(document, separators=(",", ":")).encode()
        await store.update(key, value, revision=present.revision)

    asyncio.run(_with_store(url, work))


@contextlib.contextmanager
def served(url: str, folder: Path) -> Iterator[Client]:
    folder.mkdir(exist_ok=True)
    with tools.api_server(folder, store=url) as server:
        yield Client(server)


def later(document: dict[str, Any]) -> None:
    """As a later version might have written it."""
    document["spec"]["fieldOfALaterVersion"] = {"deep": [1, 2]}
    document["metadata"]["alsoLater"] = "x"


def test_fields_of_a_later_version_are_tolerated_in_the_store_and_reported_in_a_request(
    url: str, tmp_path: Path
) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "things", "kind": "Thing"}
    definition = {
        "metadata": {"name": "things.later.example.com"},
        "spec": {"group": "later.example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }
    with served(url, tmp_path / "later") as client:
        for name in ("one", "two", "three"):
            made = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
            assert client.post(path, made).status == 201
        assert client.post(crds, definition).status == 201
        tools.wait_until(lambda: client.get("/apis/later.example.com/v1/things").status == 200, "it is served")
    for name in ("one", "two", "three"):
        change(url, f"/registry/deployments/default/{name}", later)
    for name in ("exempt", "catch-all", "system-nodes"):
        change(url, f"{FLOW}{name}", later)
    change(url, "/registry/clusterroles/cluster-admin", lambda o: o.update(laterStill=True))
    change(url, "/registry/apiextensions.k8s.io/customresourcedefinitions/things.later.example.com", later)
    change(url, "/registry/namespaces/default", later)
    with served(url, tmp_path / "earlier") as client:
        assert client.get("/readyz").status == 200
        patched = client.patch(f"{path}/one", {"spec": {"replicas": 3}})
        assert patched.status == 200, patched.body
        assert "fieldOfALaterVersion" not in patched.json["spec"]
        assert patched.json["spec"]["replicas"] == 3
        two = client.get(f"{path}/two").json
        two["spec"]["replicas"] = 5
        replaced = client.put(f"{path}/two?fieldValidation=Warn", two)
        assert replaced.status == 200, replaced.body
        assert any("fieldOfALaterVersion" in warning for warning in replaced.warnings)
        assert client.get(f"{path}/three", Accept=TABLE).status == 200
        assert client.delete(f"{path}/three").status == 200
        assert client.get("/apis/later.example.com/v1/things").status == 200
        strict = {"metadata": {"name": "x"}, "spec": {"nonsense": 1, "selector": {}, "template": template}}
        assert client.post(f"{path}?fieldValidation=Strict", strict).status == 400


def test_an_object_with_a_field_of_a_wrong_type_does_not_affect_others(url: str, tmp_path: Path) -> None:
    with served(url, tmp_path / "first"):
        pass
    for key in (
        f"{FLOW}probes",
        f"{FLOW}exempt",
        "/registry/prioritylevelconfigurations/system",
        "/registry/clusterroles/view",
        "/registry/clusterrolebindings/cluster-admin",
        "/registry/priorityclasses/system-node-critical",
        "/registry/apiregistration.k8s.io/apiservices/v1.apps",
    ):
        change(url, key, lambda o: o.update(spec=5, rules="none", subjects=7, value="high"))
    named = {"name": "bad", "namespace": "default"}
    scaler = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": named, "spec": 5}
    put(url, "/registry/horizontalpodautoscalers/default/bad", json.dumps(scaler, separators=(",", ":")).encode())
    with served(url, tmp_path / "second") as client:
        assert client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}).status == 201
        assert client.get("/api/v1/namespaces/default/configmaps/a").status == 200
        rows = client.get("/apis/rbac.authorization.k8s.io/v1/clusterroles", Accept=TABLE).json["rows"]
        assert "view" in [row["cells"][0] for row in rows]
        scalers = client.get("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", Accept=TABLE)
        assert scalers.status == 200
        assert scalers.json["rows"][0]["cells"][:2] == ["bad", "<unknown>"]
        # In another version it cannot be shown: that watch ends with an error, and no other.
        with client.watch("/apis/autoscaling/v1/horizontalpodautoscalers?watch=true") as watching:
            ended = list(watching)
        assert [event["type"] for event in ended] == ["ERROR"]
        assert ended[0]["object"]["code"] == 500
        with client.watch("/apis/autoscaling/v2/horizontalpodautoscalers?watch=true") as watching:
            assert watching.take(1)[0]["object"]["metadata"]["name"] == "bad"
        assert client.get("/livez").status == 200


def test_bytes_that_are_no_object_are_set_aside_with_their_name(url: str, tmp_path: Path) -> None:
    for key in ("pods/default/foreign", "namespaces/foreign", "secrets/default/foreign", "minions/foreign"):
        put(url, f"/registry/{key}", b"somebody else's")
    put(url, f"{FLOW}foreign", b"\xff\x00")
    with served(url, tmp_path / "server") as client:
        assert client.get("/readyz").status == 200
        found = client.get("/api/v1/namespaces/default/pods/foreign")
        assert (found.status, "set aside" in found.message) == (500, True)
        assert client.get("/api/v1/namespaces/default/pods").json["items"] == []
        with client.watch("/api/v1/namespaces?watch=true") as watching:
            assert client.post("/api/v1/namespaces", {"metadata": {"name": "new"}}).status == 201
            for event in watching:
                if event["object"]["metadata"]["name"] == "new":
                    break
        if url.startswith("http"):  # shared: it may come at any time
            put(url, "/registry/pods/default/later", b"and another")
            put(url, "/registry/configmaps/default/later", b'{"metadata":{}}')
            assert client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "b"}}).status == 201
            assert client.get("/api/v1/namespaces/default/configmaps/b").status == 200
            assert client.get("/readyz").status == 200
