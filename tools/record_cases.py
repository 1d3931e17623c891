"""Asks an upstream API server what it makes of the cases in a folder, and writes its answers into the files.

    PYTHONPATH=tests:src python tools/record_cases.py FOLDER --server https://127.0.0.1:6443 --token TOKEN [--check]

The form of the files is described in tests/cases.py. The token's user is `admin` with the uid 1, in `system:masters`.
With --check nothing is written; differences are shown instead.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from cases import NAMESPACE, RECORDED, Case, normalized, ordered, sent

from pybernetes.api import scheme
from pybernetes.api.resources import Resource


class Server:
    """An API server that we trust."""

    def __init__(self, url: str, token: str) -> None:
        self._host = urlsplit(url).netloc
        self._token = token
        self._connection: http.client.HTTPSConnection | None = None

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any], list[str]]:
        """Code, object and warnings of an answer."""
        if self._connection is None:
            context = ssl._create_unverified_context()
            self._connection = http.client.HTTPSConnection(self._host, context=context)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = self._connection.getresponse()
            answer = json.loads(response.read())
        except http.client.HTTPException:
            self._connection = None
            raise
        texts = [value for name, value in response.getheaders() if name.lower() == "warning"]
        return response.status, answer, [json.loads(text.partition(" - ")[2]) for text in texts]


def record(server: Server, case: Case) -> dict[str, Any]:
    """What the server makes of a case."""
    group, _, version = case.api_version.rpartition("/")
    resource = scheme.resource_for_kind(group, version, case.kind)
    assert resource is not None
    path = collection(resource)
    if case.stored is None:
        return outcome(*server.call("POST", f"{path}?dryRun=All&fieldValidation=Ignore", sent(case, case.base)))
    name = case.stored["metadata"]["name"]
    server.call("DELETE", f"{path}/{name}?propagationPolicy=Background")
    stored = store(server, path, case)
    try:
        suffix = "" if case.spec["do"] == "update" else f"/{case.spec['do']}"
        url = f"{path}/{name}{suffix}?dryRun=All&fieldValidation=Ignore"
        while True:
            code, answer, warnings = server.call("PUT", url, sent(case, stored))
            if code != 409 or "has been modified" not in answer["message"]:
                return outcome(code, answer, warnings, uid=stored["metadata"]["uid"])
            stored = server.call("GET", f"{path}/{name}")[1]  # a controller of the server was faster
    finally:
        server.call("DELETE", f"{path}/{name}?propagationPolicy=Background")


def store(server: Server, path: str, case: Case) -> dict[str, Any]:
    """Create the object of an update; the one before it may still be on its way out."""
    for _ in range(100):
        code, stored, _ = server.call("POST", path, case.stored)
        if code == 201:
            return stored
        if code != 409:
            break
        time.sleep(0.2)
    raise SystemExit(f"{case}: the stored object is refused: {stored.get('message')}")


def collection(resource: Resource) -> str:
    """The path of a resource's collection."""
    return f"{resource.path}/{f'namespaces/{NAMESPACE}/' if resource.namespaced else ''}{resource.plural}"


def outcome(code: int, answer: dict[str, Any], warnings: list[str], uid: str = "") -> dict[str, Any]:
    """An answer in the form that is recorded."""
    if code == 422 and answer.get("details", {}).get("causes"):
        errors = [f"{cause['field']}: {cause['message']}" for cause in answer["details"]["causes"]]
        return {"errors": without_uid(errors, uid)}
    if code >= 400:
        return {"refused": f"{code} {answer['message']}"}
    uid = uid or answer["metadata"]["uid"]
    result: dict[str, Any] = {"result": normalized(answer, uid)}
    return result | ({"warnings": warnings} if warnings else {})


def without_uid(errors: list[str], uid: str) -> Any:
    """Texts without the object's uid, which a refused object only shows in its messages."""
    if not uid:
        found = [text.split('controller-uid":"')[1][:36] for text in errors if 'controller-uid":"' in text]
        found += [text.split("must be '")[1][:36] for text in errors if "controller-uid]: Required" in text]
        uid = found[0] if found else ""
    return normalized(errors, uid) if uid else errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    server = Server(options.server, options.token)
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    different = 0
    for path in sorted(options.folder.rglob("*.yaml")) if options.folder.is_dir() else [options.folder]:
        document = yaml.safe_load(path.read_text())
        for spec in document["cases"]:
            case = Case(document["kind"], document["apiVersion"], document["base"], spec)
            answer = ordered(case, record(server, case))
            if answer != case.expected:
                different += 1
                print(f"{case}:\n  recorded {case.expected}\n  now      {answer}")
            for name in RECORDED:
                spec.pop(name, None)
            spec.update(answer)
        if not options.check:
            path.write_text(yaml.safe_dump(document, sort_keys=False, width=10_000, allow_unicode=True))
    sys.exit(1 if options.check and different else 0)


if __name__ == "__main__":
    main()
