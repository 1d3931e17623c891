"""Objects that are accepted and that a printer or a watch may choke on: one never stops the others."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.client import Client

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def event(name: str, namespace: str, **fields: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": namespace, "name": "x"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "m", **fields}


def cells(client: Client, path: str) -> list[list[Any]]:
    listed = client.get(path, Accept=TABLE)
    assert listed.status == 200, listed.body
    return [row["cells"] for row in listed.json["rows"]]


def test_an_event_of_the_year_0_is_shown_in_tables_and_watches(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/events"
    connection = client.connect()
    headers = {"Authorization": f"Bearer {client.token}", "Accept": TABLE}
    connection.request("GET", f"{path}?watch=true&timeoutSeconds=20", headers=headers)
    watching = connection.getresponse()
    odd = event("odd", namespace, firstTimestamp="0000-05-01T00:00:00Z", lastTimestamp="0000-02-29T00:00:00Z")
    assert client.post(path, odd).status == 201
    assert b'"292y"' in watching.readline()
    assert client.post(path, event("plain", namespace)).status == 201
    assert b'"<unknown>"' in watching.readline()
    connection.close()
    assert client.get(f"{path}/plain").status == 200
    assert [row[0] for row in cells(client, path)] == ["292y", "<unknown>"]
    assert client.get("/readyz").status == 200


@pytest.fixture(scope="module")
def dated(client: Client) -> str:
    """The group of custom resources with a column of type date."""
    group = "odd-dates.example.com"
    column = {"name": "At", "type": "date", "jsonPath": ".spec.at"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [column],
    }
    names = {"plural": "dates", "kind": "Date"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"metadata": {"name": f"dates.{group}"}, "spec": spec}
    assert client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).status == 201
    return group


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2024-01-01T1:00:00Z", r"^\d+y"),
        ("2024-01-01T01:00:00+24:60", r"^\d+y"),
        ("0000-02-29T00:00:00Z", "^292y$"),
        ("2024-W01-1T00:00:00Z", "^<invalid>$"),
        ("9999-12-31T23:59:59Z", "^<invalid>$"),
        ("", "^<unknown>$"),
        ("null", "^<unknown>$"),
    ],
)
def test_a_date_column_shows_every_text(client: Client, namespace: str, dated: str, at: str, shown: str) -> None:
    import re

    path = f"/apis/{dated}/v1/namespaces/{namespace}/dates"
    connection = client.connect()
    headers = {"Authorization": f"Bearer {client.token}", "Accept": TABLE}
    connection.request("GET", f"{path}?watch=true&timeoutSeconds=20", headers=headers)
    watching = connection.getresponse()
    assert watching.status == 200
    made = {"apiVersion": f"{dated}/v1", "kind": "Date", "metadata": {"name": "one"}, "spec": {"at": at}}
    assert client.post(path, made).status == 201
    assert b'"ADDED"' in watching.readline()
    connection.close()
    assert re.match(shown, cells(client, path)[0][1])


def test_a_job_of_the_year_0_is_printed(client: Client, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    spec = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
    assert client.post(path, {"metadata": {"name": "j"}, "spec": {"template": {"spec": spec}}}).status == 201
    started = client.patch(f"{path}/j/status", {"status": {"startTime": "0000-02-29T00:00:00Z"}})
    assert started.status == 200, started.body
    assert cells(client, path)[0][3] == "292y"
