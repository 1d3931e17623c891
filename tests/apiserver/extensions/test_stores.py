"""Definitions survive a restart, and all servers of a store serve them."""

from __future__ import annotations

from pathlib import Path

from apiserver.client import Client
from apiserver.extensions.defining import DEFINITIONS, Kind, spec_schema, version
from store.tools import Etcd

from tools import api_server, wait_until

SCHEMA = spec_schema(size={"type": "string", "maxLength": 5}, color={"type": "string", "default": "red"})


def test_definitions_and_objects_outlive_a_restart(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/store.db"
    with api_server(tmp_path / "first", store=store) as server:
        kind = Kind(Client(server), version(SCHEMA), version(SCHEMA, "v2", storage=False)).established()
        kind.post("a", spec={"size": "s"})
        before = kind.get("a").json
    with api_server(tmp_path / "second", store=store) as server:
        kind.client = Client(server)
        assert kind.get("a").json == before
        assert kind.get("a", "v2").json["apiVersion"] == f"{kind.group}/v2"
        assert kind.post("b", spec={"size": "too long"}).status == 422
        assert kind.read()["status"]["conditions"][1]["status"] == "True"
        kind.delete()
        wait_until(lambda: kind.client.get(f"{DEFINITIONS}/{kind.name}").status == 404, "the definition is gone", 5)
    with api_server(tmp_path / "third", store=store) as server:
        assert Client(server).get(kind.path()).status == 404


def test_all_servers_of_a_store_serve_a_definition_created_at_one(tmp_path: Path, own_etcd: Etcd) -> None:
    with (
        api_server(tmp_path / "one", store=own_etcd.url) as first,
        api_server(tmp_path / "two", store=own_etcd.url) as second,
    ):
        kind = Kind(Client(first), version(SCHEMA)).established()
        other = Client(second)
        made = other.post(kind.path(), kind.object("a", spec={"size": "s"}))
        assert made.status == 201, "the other server serves it at once"
        assert kind.get("a").json == made.json
        with other.watch(f"{kind.path()}?watch=true") as events:
            assert events.take(1)[0]["type"] == "ADDED"
            kind.post("b")
            assert events.take(1)[0]["object"]["metadata"]["name"] == "b"
        wider = spec_schema(size={"type": "string"}, color={"type": "string", "default": "blue"})
        assert kind.change({"spec": {"versions": [version(wider)]}}).status == 200

        def applies() -> bool:
            answer = other.post(kind.path() + "?dryRun=All", kind.object("c", spec={"size": "too long"}))
            return bool(answer.status == 201 and answer.json["spec"]["color"] == "blue")

        wait_until(applies, "the change applies there, too", 3)
        kind.delete()
        wait_until(lambda: other.get(kind.path()).status == 404, "it is gone there, too", 5)
        assert other.get(f"/apis/{kind.group}").status == 404
