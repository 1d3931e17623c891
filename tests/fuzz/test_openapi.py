"""schemathesis over our own OpenAPI documents: requests made from them are answered as they promise.

A request is good or bad by the document; either way the answer is none of the server's faults, and what it answers with
success has the shape the document says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from fuzz.budget import attempt, effort
from fuzz.target import Reply, Target, check
from schemathesis.specs.openapi.checks import response_schema_conformance

from pybernetes.api import scheme
from tools import ApiServer

DOCUMENTS = sorted({each.path.removeprefix("/") for each in scheme.resources()})
BRIEFLY = 24
"""Of so many operations one is tried in the ordinary run: reading the schemas of bodies takes a second each."""


@pytest.fixture(scope="module")
def session(server: ApiServer) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {server.token}"
        session.trust_env = False
        yield session


@pytest.mark.parametrize("document", DOCUMENTS)
@effort
def test_operations(document: str, effort: int, server: ApiServer, target: Target, session: requests.Session) -> None:
    found = with_nulls(json.loads(target.send("GET", f"/openapi/v3/{document}").body))
    operations = [result.ok() for result in schemathesis.openapi.from_dict(found).get_all_operations()]
    operations = [each for each in operations if "/watch/" not in each.path]  # they do not end
    step = BRIEFLY if effort == 1 else 1
    for operation in operations[DOCUMENTS.index(document) % step :: step]:

        def send(case: Any) -> None:
            tame(case)
            response = case.call(base_url=server.url, session=session, verify=str(server.ca_file), timeout=30)
            media = response.headers.get("Content-Type", [""])[0]
            check(Reply(response.status_code, media, response.content), case.method, case.formatted_path)
            if response.status_code < 300:
                case.validate_response(response, checks=[response_schema_conformance])

        attempt(send, operation.as_strategy(), examples=4, effort=min(effort, 3))


def with_nulls(schema: Any) -> Any:
    """The document as it is kept: Go writes null for an empty list, and for a map, that must be there."""
    if isinstance(schema, list):
        return [with_nulls(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: with_nulls(each) for key, each in schema.items()}
    if schema.get("type") == "array" or isinstance(schema.get("additionalProperties"), dict):
        changed["nullable"] = True
    return changed


def tame(case: Any) -> None:
    """Neither watch without an end, nor wait for a resourceVersion that is yet to come; the namespace is ours."""
    query = case.query
    if query:
        query.pop("resourceVersion", None)
        if "watch" in query:
            query["timeoutSeconds"] = 0
            query["watch"] = False
    if case.path_parameters and "namespace" in case.path_parameters:
        case.path_parameters["namespace"] = "fuzz"
    if case.method == "DELETE" and case.path_parameters and case.path_parameters.get("name") == "fuzz":
        case.path_parameters["name"] = "other"
