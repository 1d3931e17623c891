"""An API server that only knows a list of objects, for what kubectl prints of them: statuses that no server would take,
and APIs that ours does not serve.

A file of descriptions holds objects, a line of JSON each, and what upstream's kubectl v1.36 printed for
`kubectl describe`, a line after `> ` each.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pybernetes.api.resources import GROUPS, OPTIONAL, RESOURCES, Resource

FOLDER = Path(__file__).parent / "kubectl" / "described"
_VERSIONS = {(group.name, version) for group in GROUPS for version in group.versions} | {("metrics.k8s.io", "v1beta1")}
_KNOWN = [each for each in (*RESOURCES, *(each for each, _ in OPTIONAL)) if (each.group, each.version) in _VERSIONS]


def load(path: Path) -> list[tuple[dict[str, Any], str]]:
    """The objects of a file, each with its description."""
    found: list[tuple[dict[str, Any], str]] = []
    for line in path.read_text().splitlines():
        if line.startswith("{"):
            found.append((json.loads(line), ""))
        elif found and line[:1] == ">":
            found[-1] = found[-1][0], f"{found[-1][1]}{line[2:]}\n"
    return found


def dump(entries: list[tuple[dict[str, Any], str]]) -> str:
    """The text of a file."""
    lines = []
    for obj, text in entries:
        lines.append(json.dumps(obj, separators=(",", ":")))
        lines += [f"> {line}".rstrip() for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def resource_of(obj: dict[str, Any]) -> Resource:
    """What kind of resource an object is."""
    return next(each for each in _KNOWN if (each.api_version, each.kind) == (obj["apiVersion"], obj["kind"]))


@contextmanager
def serve(objects: list[dict[str, Any]]) -> Iterator[str]:
    """Serves the objects and gives the server's URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            answer = _answer(objects, url.path.strip("/").split("/"), parse_qs(url.query))
            body = json.dumps(answer).encode()
            self.send_response(answer.get("code", 200) if answer.get("kind") == "Status" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _answer(objects: list[dict[str, Any]], path: list[str], query: dict[str, list[str]]) -> dict[str, Any]:
    if path == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == ["apis"]:
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups()}
    group, version, *rest = ("", *path[1:]) if path[0] == "api" else path[1:]
    if not rest:
        return _resources(group, version)
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2:
        _, namespace, *rest = rest
    kind = next((each for each in _KNOWN if (each.group, each.version, each.plural) == (group, version, rest[0])), None)
    found = [each for each in objects if kind is not None and resource_of(each) is kind]
    found = [each for each in found if namespace in (None, each["metadata"].get("namespace"))]
    if kind is not None and len(rest) == 1:
        items = [] if "labelSelector" in query else found
        return {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": {}, "items": items}
    for each in found:
        if each["metadata"]["name"] == rest[1]:
            return each
    message = f'{rest[0]} "{rest[-1]}" not found'
    return {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": message}


def _groups() -> list[dict[str, Any]]:
    versions: dict[str, list[dict[str, str]]] = {}
    for each in _KNOWN:
        entry = {"groupVersion": each.api_version, "version": each.version}
        if each.group and entry not in versions.setdefault(each.group, []):
            versions[each.group].append(entry)
    return [{"name": name, "versions": found, "preferredVersion": found[0]} for name, found in versions.items()]


def _resources(group: str, version: str) -> dict[str, Any]:
    found = [
        {
            "name": each.plural,
            "singularName": each.singular,
            "namespaced": each.namespaced,
            "kind": each.kind,
            "verbs": list(each.verbs),
            "shortNames": list(each.short_names),
        }
        for each in _KNOWN
        if (each.group, each.version) == (group, version)
    ]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": found}
