"""Lists: order, selectors, pages over a snapshot, versions."""

from __future__ import annotations

import base64
import json

import pytest
from apiserver.client import Client


@pytest.fixture
def path(client: Client, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(10):
        labels = {"n": str(number), "half": "low" if number < 5 else "high"}
        made = client.post(path, {"metadata": {"name": f"c{number}", "labels": labels}})
        assert made.status == 201
    return path


def names(answer: dict[str, object]) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]  # type: ignore[attr-defined]


def test_a_list_is_sorted_by_name_and_its_items_carry_no_kind(client: Client, path: str) -> None:
    found = client.get(path).json
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert names(found) == [f"c{n}" for n in range(10)]
    assert "kind" not in found["items"][0]
    assert int(found["metadata"]["resourceVersion"]) >= int(found["items"][-1]["metadata"]["resourceVersion"])


def test_an_empty_list_has_an_empty_array(client: Client, namespace: str) -> None:
    assert client.get(f"/api/v1/namespaces/{namespace}/secrets").json["items"] == []


def test_all_namespaces_at_once(client: Client, path: str, namespace: str) -> None:
    everywhere = client.get("/api/v1/configmaps").json["items"]
    here = [item for item in everywhere if item["metadata"]["namespace"] == namespace]
    assert len(here) == 10


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("half=low", "01234"),
        ("half==high", "56789"),
        ("half!=low", "56789"),
        ("n in (1,3)", "13"),
        ("n notin (1,3),half=low", "024"),
        ("n,half=high", "56789"),
        ("!n", ""),
        ("missing!=x", "0123456789"),
        ("n>7", "89"),
        ("n<2", "01"),
    ],
)
def test_label_selectors(client: Client, path: str, selector: str, expected: str) -> None:
    from urllib.parse import quote

    found = client.get(f"{path}?labelSelector={quote(selector)}").json
    assert names(found) == [f"c{n}" for n in expected]


def test_bad_selectors_are_refused(client: Client, path: str) -> None:
    for query in ("labelSelector=a%20in", "labelSelector=%3D%3D", "fieldSelector=spec.nope%3Dx", "limit=x"):
        answer = client.get(f"{path}?{query}")
        assert (answer.status, answer.json["reason"]) == (400, "BadRequest"), query
    assert client.get(f"{path}?fieldSelector=spec.nope%3Dx").message == (
        '"spec.nope" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


def test_errors_come_in_upstreams_order(client: Client, path: str) -> None:
    wrong = ["limit=x", "labelSelector=a b", "fieldSelector=a", "resourceVersionMatch=Exact", "fieldSelector=a=b"]
    told = ["strconv.ParseInt", "unable to parse requirement", "invalid selector", "ListOptions", "a known field"]
    for index, words in enumerate(told):
        message = client.get(f"{path}?{'&'.join(wrong[index:]).replace(' ', '%20')}").message
        assert words in message, (wrong[index:], message)


def test_field_selectors(client: Client, path: str, namespace: str) -> None:
    assert names(client.get(f"{path}?fieldSelector=metadata.name%3Dc3").json) == ["c3"]
    assert len(client.get(f"{path}?fieldSelector=metadata.name!%3Dc3").json["items"]) == 9
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name, node in (("p1", "n1"), ("p2", "n2"), ("p3", "")):
        spec = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
        assert client.post(pods, {"metadata": {"name": name}, "spec": spec}).status == 201
    assert names(client.get(f"{pods}?fieldSelector=spec.nodeName%3Dn1").json) == ["p1"]
    assert names(client.get(f"{pods}?fieldSelector=spec.nodeName%3D").json) == ["p3"]
    assert names(client.get(f"{pods}?fieldSelector=status.phase%3DPending,spec.nodeName!%3D").json) == ["p1", "p2"]
    assert names(client.get(f"{pods}?fieldSelector=spec.restartPolicy%3DAlways").json) == ["p1", "p2", "p3"]


def test_pages_are_one_snapshot_while_writes_go_on(client: Client, path: str) -> None:
    first = client.get(f"{path}?limit=4").json
    assert names(first) == ["c0", "c1", "c2", "c3"]
    assert first["metadata"]["remainingItemCount"] == 6
    client.delete(f"{path}/c4")
    client.post(path, {"metadata": {"name": "c45"}})
    client.patch(f"{path}/c5", {"data": {"new": "yes"}})
    second = client.get(f"{path}?limit=4&continue={first['metadata']['continue']}").json
    assert names(second) == ["c4", "c5", "c6", "c7"]
    assert "data" not in second["items"][1]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second["metadata"]["remainingItemCount"] == 2
    last = client.get(f"{path}?limit=4&continue={second['metadata']['continue']}").json
    assert names(last) == ["c8", "c9"]
    assert "continue" not in last["metadata"]
    assert "remainingItemCount" not in last["metadata"]


def test_pages_with_a_selector_do_not_count_what_remains(client: Client, path: str) -> None:
    first = client.get(f"{path}?limit=3&labelSelector=half%3Dhigh").json
    assert names(first) == ["c5", "c6", "c7"]
    assert "remainingItemCount" not in first["metadata"]
    client.post(path, {"metadata": {"name": "later", "labels": {"half": "high"}}})
    token = first["metadata"]["continue"]
    assert names(client.get(f"{path}?limit=3&labelSelector=half%3Dhigh&continue={token}").json) == ["c8", "c9"]


def test_a_bad_continue_token_is_refused(client: Client, path: str) -> None:
    def token(**content: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    for bad in ("x", "!!", token(v="meta.k8s.io/v1", rv=5, start="../secrets"), token(v="v9", rv=5, start="a")):
        answer = client.get(f"{path}?limit=1&continue={bad}")
        assert answer.status == 400, bad
        assert answer.message.startswith("invalid continue token: continue key is not valid: "), answer.message


def test_exact_and_not_older_versions(client: Client, path: str) -> None:
    before = client.get(path).json["metadata"]["resourceVersion"]
    client.delete(f"{path}/c0")
    exact = client.get(f"{path}?resourceVersion={before}&resourceVersionMatch=Exact").json
    assert (names(exact)[0], exact["metadata"]["resourceVersion"]) == ("c0", before)
    newer = client.get(f"{path}?resourceVersion={before}&resourceVersionMatch=NotOlderThan").json
    assert names(newer)[0] == "c1"
    assert names(client.get(f"{path}?resourceVersion=0").json)[0] == "c1"
    page = client.get(f"{path}?resourceVersion={before}&limit=2").json
    assert (names(page), page["metadata"]["resourceVersion"]) == (
        ["c0", "c1"],
        before,
    )  # a page is exact unless it says
    assert names(client.get(f"{path}?resourceVersion={before}").json)[0] == "c1"


def test_bad_versions_are_refused(client: Client, path: str) -> None:
    for query in (
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Maybe&resourceVersion=5",
        "sendInitialEvents=true",
    ):
        answer = client.get(f"{path}?{query}")
        assert (answer.status, answer.json["reason"]) == (422, "Invalid"), query
    future = client.get(f"{path}?resourceVersion=999999999")
    assert (future.status, future.json["reason"]) == (504, "Timeout")
    assert future.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert future.headers["Retry-After"] == "1"


def test_partial_metadata(client: Client, path: str) -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    found = client.get(path, Accept=accept).json
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert found["items"][0]["kind"] == "PartialObjectMetadata"
    assert set(found["items"][0]) == {"kind", "apiVersion", "metadata"}
    one = client.get(f"{path}/c1", Accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").json
    assert one["metadata"]["name"] == "c1"


def test_tables(client: Client, path: str) -> None:
    table = client.get(path, Accept="application/json;as=Table;g=meta.k8s.io;v=v1,application/json").json
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["c0", 0]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    bare = client.get(f"{path}?includeObject=None", Accept="application/json;as=Table;g=meta.k8s.io;v=v1").json
    assert "object" not in bare["rows"][0] or bare["rows"][0]["object"] is None


def test_numbers_in_the_query_are_read_as_go_does(client: Client, path: str) -> None:
    assert len(client.get(f"{path}?limit=-1").json["items"]) == 10
    for text, why in (("", "invalid syntax"), ("1.5", "invalid syntax"), ("9" * 20, "value out of range")):
        answer = client.get(f"{path}?limit={text}")
        assert (answer.status, answer.message) == (400, f'strconv.ParseInt: parsing "{text}": {why}')


def test_version_zero_is_not_cut_into_pages(client: Client, path: str) -> None:
    page = client.get(f"{path}?limit=2&resourceVersion=0").json
    assert len(page["items"]) == 10
    assert "continue" not in page["metadata"]


def test_a_version_that_is_no_number_is_a_bad_request(client: Client, path: str) -> None:
    why = 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'
    for query, message in (
        ("resourceVersion=x", f"invalid resource version: {why}"),
        ("watch=1&resourceVersion=x", why),
    ):
        answer = client.get(f"{path}?{query}")
        assert (answer.status, answer.message) == (400, message)


def test_unsupported_field_selectors_get_the_error_of_the_kind(client: Client) -> None:
    for path, message in (
        ("/api/v1/pods", "field label not supported: x"),
        ("/apis/batch/v1/jobs", 'field label "x" not supported for Job'),
        ("/apis/apps/v1/replicasets", '"x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
    ):
        assert client.get(f"{path}?fieldSelector=x%3Dy").message == message
    assert client.get("/api/v1/persistentvolumes?fieldSelector=metadata.namespace%3Dx").status == 200
