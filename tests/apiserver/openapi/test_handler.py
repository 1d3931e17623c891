"""The documents over HTTP: forms, caching, hashes, and kinds that come and go."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import ssl
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import tools
from pybernetes.api.errors import PathNotFound, ServiceUnavailable
from pybernetes.apiserver.openapi import handler
from pybernetes.apiserver.openapi.build import Order, Packed, make
from pybernetes.apiserver.openapi.handler import Custom, OpenAPI
from pybernetes.apiserver.openapi.kinds import CustomKind

PROTOBUF = "application/com.github.proto-openapi.spec.v{}{}v1.0+protobuf"


def get(cluster: tools.ApiServer, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Without following redirects and without unpacking."""
    parts = urlsplit(cluster.url)
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=60)
    sent = {"Authorization": f"Bearer {cluster.token}"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=sent)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def test_version_2_is_json_unless_asked_otherwise(cluster: tools.ApiServer) -> None:
    status, headers, body = get(cluster, "/openapi/v2")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert "Accept" in headers.get_all("Vary", [])
    assert json.loads(body)["swagger"] == "2.0"


@pytest.mark.parametrize("between", ["@", "."])
@pytest.mark.parametrize(("version", "path"), [(2, "/openapi/v2"), (3, "/openapi/v3/apis/apps/v1")])
def test_protobuf_has_the_etag_of_the_json(cluster: tools.ApiServer, version: int, path: str, between: str) -> None:
    status, headers, body = get(cluster, path, Accept=PROTOBUF.format(version, between))
    assert (status, headers["Content-Type"]) == (200, PROTOBUF.format(version, "."))
    assert body[:2] == (b"\n\x03" if version == 2 else b"\n\x05")
    assert headers["ETag"] == get(cluster, path)[1]["ETag"]


def test_a_client_that_takes_gzip_gets_it_once(cluster: tools.ApiServer) -> None:
    _, headers, body = get(cluster, "/openapi/v2", Accept_Encoding="gzip")
    assert headers.get_all("Content-Encoding") == ["gzip"]
    assert gzip.decompress(body) == get(cluster, "/openapi/v2")[2]


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3/version"])
def test_a_matching_etag_gets_304(cluster: tools.ApiServer, path: str) -> None:
    _, headers, _ = get(cluster, path)
    etag = headers["ETag"]
    for given in (etag, f"W/{etag}", f'"other", {etag}'):
        status, headers, body = get(cluster, path, If_None_Match=given)
        assert (status, body, headers["ETag"]) == (304, b"", etag)
    assert get(cluster, path, If_None_Match='"other"')[0] == 200


def test_the_index_leads_to_documents_that_never_change(cluster: tools.ApiServer) -> None:
    paths = json.loads(get(cluster, "/openapi/v3")[2])["paths"]
    assert {"api/v1", "apis/apps/v1", "version"} <= paths.keys()
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/apis/apps/v1?hash=")
    status, headers, body = get(cluster, url)
    assert (status, headers["Cache-Control"]) == (200, "public, immutable")
    assert headers["Expires"].endswith("GMT")
    assert headers["ETag"] == f'"{url.partition("=")[2]}"'
    assert "/apis/apps/v1/namespaces/{namespace}/deployments" in json.loads(body)["paths"]


def test_an_old_hash_is_sent_to_the_current_one(cluster: tools.ApiServer) -> None:
    status, headers, body = get(cluster, "/openapi/v3/api/v1?hash=OLD")
    assert (status, body) == (301, b"")
    assert headers["Location"] == json.loads(get(cluster, "/openapi/v3")[2])["paths"]["api/v1"]["serverRelativeURL"]
    assert "immutable" not in headers["Cache-Control"]


def test_without_a_hash_the_answer_may_change(cluster: tools.ApiServer) -> None:
    status, headers, _ = get(cluster, "/openapi/v3/api/v1")
    assert (status, headers["Expires"]) == (200, None)
    assert "immutable" not in headers["Cache-Control"]


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v1", "/openapi/v3/apis/none/v1", "/openapi/v2/more"])
def test_other_paths_are_not_found(cluster: tools.ApiServer, path: str) -> None:
    assert get(cluster, path)[0] == 404


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("application/json;q=x", 406),
        ("*/*", 200),
        ("application/*", 200),
        (f"{PROTOBUF.format(9, '@')}, application/json;q=0.5", 200),
    ],
)
def test_forms_that_are_not_there_are_refused(cluster: tools.ApiServer, accept: str, status: int) -> None:
    assert get(cluster, "/openapi/v2", Accept=accept)[0] == status


def test_quality_decides(cluster: tools.ApiServer) -> None:
    accept = f"application/json;q=0.5, {PROTOBUF.format(2, '@')};q=0.9"
    assert get(cluster, "/openapi/v2", Accept=accept)[1]["Content-Type"] == PROTOBUF.format(2, ".")


# -- the seam for custom kinds, without a server ---------------------------------------------------------------------


def ask(path: str) -> Any:
    return SimpleNamespace(path=path, headers={}, info=SimpleNamespace(query={}), accepts_gzip=lambda: True)


def custom(kind: str) -> Custom:
    schema = msgspec.Raw(b'{"type":"object","properties":{"spec":{"type":"object"}}}')
    made = CustomKind("example.org", "v1", f"{kind.lower()}s", kind, f"{kind}List", True, False, False, schema)
    return {"apis/example.org/v1": (kind, lambda: [made])}


async def read(openapi: OpenAPI, path: str) -> Any:
    return json.loads(gzip.decompress((await openapi(ask(path))).body))


def test_custom_kinds_come_change_and_go() -> None:
    async def scenario() -> None:
        state = {"generation": 1, "custom": custom("Widget")}
        openapi = OpenAPI(lambda: state["generation"], lambda: state["custom"])
        assert "org.example.v1.Widget" in (await read(openapi, "/openapi/v2"))["definitions"]
        document = await read(openapi, "/openapi/v3/apis/example.org/v1")
        assert {"org.example.v1.Widget", "org.example.v1.WidgetList"} <= document["components"]["schemas"].keys()
        state |= {"generation": 2, "custom": custom("Gadget")}
        definitions = (await read(openapi, "/openapi/v2"))["definitions"]
        assert "org.example.v1.Gadget" in definitions
        assert "org.example.v1.Widget" not in definitions
        state |= {"generation": 3, "custom": {}}
        assert "org.example.v1.Gadget" not in (await read(openapi, "/openapi/v2"))["definitions"]
        with pytest.raises(PathNotFound):
            await openapi(ask("/openapi/v3/apis/example.org/v1"))

    asyncio.run(scenario())


def test_documents_are_made_once_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Order] = []

    async def build(order: Order) -> dict[str, Packed]:
        orders.append(order)
        await asyncio.sleep(0)
        return {"": Packed("E", gzip.compress(b"{}"))}

    async def scenario() -> None:
        openapi = OpenAPI()
        first = asyncio.create_task(openapi(ask("/openapi/v2")))
        second = asyncio.create_task(openapi(ask("/openapi/v2")))
        await asyncio.sleep(0)
        first.cancel()  # the client went away; the other still gets its answer
        assert (await second).status == 200
        assert (await openapi(ask("/openapi/v2"))).status == 200

    monkeypatch.setattr(handler, "build", build)
    asyncio.run(scenario())
    assert len(orders) == 1


def test_a_change_while_documents_are_made_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Order] = []
    state: dict[str, Any] = {"generation": 1, "custom": custom("Widget")}
    openapi = OpenAPI(lambda: state["generation"], lambda: state["custom"])

    async def build(order: Order) -> dict[str, Packed]:
        orders.append(order)
        if order.custom is None:
            return {}
        if len(orders) == 2:
            state.update(generation=2, custom=custom("Gadget"))
        return {path: Packed("E", gzip.compress(kinds[0].kind.encode())) for path, kinds in order.custom.items()}

    monkeypatch.setattr(handler, "build", build)
    answer = asyncio.run(openapi(ask("/openapi/v3/apis/example.org/v1")))
    assert gzip.decompress(answer.body) == b"Gadget"
    assert len(orders) == 3


def test_a_failure_is_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Any] = [RuntimeError("no memory"), {"": Packed("E", gzip.compress(b"{}"))}]

    async def build(order: Order) -> dict[str, Packed]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        made: dict[str, Packed] = outcome
        return made

    async def scenario() -> None:
        openapi = OpenAPI()
        with pytest.raises(ServiceUnavailable):
            await openapi(ask("/openapi/v2"))
        assert await read(openapi, "/openapi/v2") == {}

    monkeypatch.setattr(handler, "build", build)
    asyncio.run(scenario())


def test_the_same_documents_have_the_same_hashes() -> None:
    first, second = make(Order(3)), make(Order(3, protobuf=True))
    assert {path: each.etag for path, each in first.items()} == {path: each.etag for path, each in second.items()}
    assert len({each.etag for each in first.values()}) == len(first)
