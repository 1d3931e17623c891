"""Whatever is sent to a real server, it answers with what was asked for or a refusal, and goes on serving."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from fuzz import wild
from fuzz.budget import attempt, effort
from fuzz.journey import journey
from fuzz.target import Target, path_of
from hypothesis import strategies as st

from pybernetes.api import scheme
from pybernetes.api.resources import Resource

kinds = pytest.mark.parametrize("resource", scheme.resources(), ids=lambda each: f"{each.api_version}/{each.kind}")

NAMES = st.one_of(st.sampled_from(["good", "missing", "."]), wild.texts)
MEDIA = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/cbor",
        "application/json; charset=latin1",
        "application/json;;",
        "text/plain",
        "*/*",
        "x",
        "",
        ";",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/apply-patch+cbor",
    ]
)
PATCHES = st.sampled_from(
    [f"application/{kind}" for kind in ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json")]
    + ["application/apply-patch+yaml"]
)
ACCEPT = st.sampled_from(
    [
        "",
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/json;as=X;v=v9;g=meta.k8s.io,application/json;q=nan",
        "text/html, */*;q=x",
        ",;=",
    ]
)
# A resourceVersion of the future is waited for, so those of `VERSIONS` are of the past or none at all.
VERSIONS = st.sampled_from(["", "0", "1", "-1", "x", "01", "1.0", "9" * 5000, "٣", "²", "18446744073709551616", "\0"])
QUERY = st.fixed_dictionaries(
    {},
    optional={
        "labelSelector": st.one_of(wild.texts, st.sampled_from(["a=b", "a in (b)", "!a", "a>1", "a in (", "a=b=c"])),
        "fieldSelector": st.one_of(wild.texts, st.sampled_from(["metadata.name=a", "x=y", "metadata.name!=", "a\\"])),
        "resourceVersion": VERSIONS,
        "resourceVersionMatch": st.sampled_from(["Exact", "NotOlderThan", "x"]),
        "limit": st.one_of(wild.texts, st.sampled_from(["1", "-1", "x", "9" * 30, "0x1", "1_0"])),
        "continue": st.one_of(
            wild.texts, st.sampled_from(["e30", "bnVsbA", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTF9"])
        ),
        "timeoutSeconds": st.sampled_from(["x", "-1", "1", "1e9"]),
        "dryRun": st.one_of(st.just("All"), wild.texts),
        "fieldManager": wild.texts,
        "fieldValidation": st.one_of(st.sampled_from(["Strict", "Warn", "Ignore"]), wild.texts),
        "force": st.sampled_from(["true", "false", "x", ""]),
        "pretty": wild.texts,
        "includeObject": st.sampled_from(["None", "Object", "Metadata", "x"]),
        "gracePeriodSeconds": st.sampled_from(["0", "-1", "x", "9" * 30]),
        "propagationPolicy": st.sampled_from(["Orphan", "Foreground", "x"]),
        "orphanDependents": st.sampled_from(["true", "x"]),
        "sendInitialEvents": st.sampled_from(["true", "false", "x"]),
        "allowWatchBookmarks": st.sampled_from(["true", "x"]),
        "ignoreStoreReadErrorWithClusterBreakingPotential": st.sampled_from(["true", "x"]),
    },
)


def encoded(path: str, query: dict[str, str] | None = None) -> str:
    """A path with its query."""
    return f"{path}?{urlencode(query, errors='replace')}" if query else path


def segment(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="", errors="replace")


def bodies(resource: Resource) -> st.SearchStrategy[bytes]:
    """Objects, spoiled objects, and what is none."""
    way = journey(resource)
    objects = (wild.mutated(way.base(), resource.type), wild.documents(resource.type))
    return st.one_of(*(each.map(wild.encode) for each in objects), wild.wild_bytes)


@pytest.fixture(autouse=True)
def good(target: Target, request: pytest.FixtureRequest) -> None:
    """An object of the kind to work on, where one can be made."""
    if "resource" in request.fixturenames:
        resource = request.getfixturevalue("resource")
        if resource.stored and "create" in resource.verbs:
            base = journey(resource).base()
            body = wild.encode({**base, "metadata": {**base["metadata"], "name": "good", "namespace": None}})
            target.send("POST", path_of(resource), body, {"Content-Type": "application/json"})


@kinds
@effort
def test_creates(resource: Resource, target: Target, effort: int) -> None:
    def check(body: bytes, media: str, accept: str, query: dict[str, str]) -> None:
        headers = {"Content-Type": media, "Accept": accept}
        target.send("POST", encoded(path_of(resource), query), body, headers)

    media = st.one_of(st.just("application/json"), st.just("application/yaml"), MEDIA)
    attempt(check, bodies(resource), media, ACCEPT, QUERY, examples=12, effort=effort)


@kinds
@effort
def test_updates_and_patches(resource: Resource, target: Target, effort: int) -> None:
    subresources = ["", *(each.name for each in resource.subresources)]

    def check(method: str, name: str, subresource: str, body: bytes, media: str, query: dict[str, str]) -> None:
        path = path_of(resource, segment(name), subresource)
        target.send(method, encoded(path, query), body, {"Content-Type": media})

    media = st.one_of(PATCHES, PATCHES, st.just("application/json"), MEDIA)
    names = st.one_of(st.just("good"), st.just("good"), NAMES)
    methods = st.sampled_from(["PUT", "PATCH", "PATCH", "POST"])
    inputs: tuple[Any, ...] = (methods, names, st.sampled_from(subresources), bodies(resource), media, QUERY)
    attempt(check, *inputs, examples=20, effort=effort)


@kinds
@effort
def test_reads_and_deletes(resource: Resource, target: Target, effort: int) -> None:
    def check(method: str, name: str, watch: bool, query: dict[str, str], accept: str, body: bytes) -> None:
        if watch:
            query = {**query, "watch": "1", "timeoutSeconds": "1"}
        sent = body if method == "DELETE" else None
        path = path_of(resource, segment(name))
        target.send(method, encoded(path, query), sent, {"Accept": accept, "Content-Type": "application/json"})

    names = st.one_of(st.just(""), NAMES)
    methods = st.sampled_from(["GET", "GET", "HEAD", "DELETE", "OPTIONS", "FOO"])
    body = st.one_of(wild.wild_bytes, wild.values.map(wild.encode), st.just(b""))
    attempt(check, methods, names, st.booleans(), QUERY, ACCEPT, body, examples=12, effort=effort)


@effort
def test_paths(target: Target, effort: int) -> None:
    parts = st.one_of(
        st.sampled_from(["api", "apis", "v1", "apps", "namespaces", "pods", "watch", "fuzz", "", "..", "status"]),
        st.sampled_from(
            ["healthz", "metrics", "openapi", "v2", "v3", "version", "proxy", "log", "%", "%2f", "%00", "a%"]
        ),
        wild.texts.map(segment),
    )

    def check(method: str, path: list[str], query: dict[str, str]) -> None:
        target.send(method, encoded("/" + "/".join(path), query))

    methods = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
    attempt(check, methods, st.lists(parts, max_size=8), QUERY, examples=300, effort=effort)


@pytest.mark.parametrize("media", ["application/json", "application/yaml", "application/apply-patch+yaml"])
@pytest.mark.parametrize("part", [b"[", b'{"a":', b"- ", b"{a: ", b"{\"spec\":{\"x\":["], ids=repr)  # fmt: skip
@pytest.mark.parametrize("count", [1_000, 10_000, 200_000])
def test_deep_nesting(target: Target, media: str, part: bytes, count: int) -> None:
    method, path = ("PATCH", "/good?fieldManager=x") if "patch" in media else ("POST", "")
    reply = target.send(method, f"/api/v1/namespaces/fuzz/configmaps{path}", part * count, {"Content-Type": media})
    assert reply.status in (400, 422)


@pytest.mark.parametrize("media", ["merge-patch", "json-patch", "strategic-merge-patch"])
def test_patches_nested_deeply(target: Target, media: str) -> None:
    target.send("POST", "/api/v1/namespaces/fuzz/configmaps", b'{"metadata":{"name":"deep"}}')
    for count in (100, 450, 700, 950, 1100, 3000, 50_000):
        for body in (
            b'{"data":' * count + b"1" + b"}" * count,
            b'[{"op":"add","path":"/data","value":' + b"[" * count + b"]" * count + b"}]",
        ):
            headers = {"Content-Type": f"application/{media}+json"}
            reply = target.send("PATCH", "/api/v1/namespaces/fuzz/configmaps/deep", body, headers)
            assert reply.status in (400, 422)


def test_resource_versions_of_the_future(target: Target) -> None:
    reply = target.send("GET", "/api/v1/namespaces/fuzz/pods?resourceVersion=9223372036854775807")
    assert reply.status == 504
    assert target.send("GET", "/api/v1/namespaces/fuzz/pods?resourceVersion=18446744073709551615").status == 504


RAW = [
    b"",
    b"\0" * 100,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
    b"GET /a b HTTP/1.1\r\n\r\n",
    b"GET http://[::1/x HTTP/1.1\r\n\r\n",
    b"GET http://a:b/x HTTP/1.1\r\n\r\n",
    b"GET * HTTP/1.1\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n\r\n",
    b"CONNECT / HTTP/1.1\r\n\r\n",
    b"GET // HTTP/1.1\r\n\r\n",
    b"GET /?\xff=%zz&;&=&a HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nAuthorization: \xff\xfe\r\n\r\n",
    b"GET / HTTP/1.1\r\nAuthorization: Bearer\r\n\r\n",
    b"GET / HTTP/1.1\r\nAuthorization: Bearer " + b"x" * 5000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nA" + b"a" * 2_000_000,
    b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nA\0: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\0\0",
    b"GET /api HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\nrubbish",
    b"GET /" + b"a/" * 100_000 + b" HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("data", RAW, ids=lambda data: repr(data[:40]))
def test_what_is_no_request(target: Target, data: bytes) -> None:
    received = target.raw(data)
    assert not received.startswith(b"HTTP/1.1 5"), received[:200]


@effort
def test_bytes_that_are_no_request(target: Target, effort: int) -> None:
    pieces = st.sampled_from(
        [
            b"GET ",
            b"/api",
            b" HTTP/1.1",
            b"\r\n",
            b"\n",
            b"Host: a",
            b"Content-Length: 3",
            b": ",
            b"\0",
            b"\xff",
            b"x" * 99,
        ]
    )

    def check(parts: list[bytes]) -> None:
        assert not target.raw(b"".join(parts) + b"\r\n\r\n\r\n").startswith(b"HTTP/1.1 5")

    attempt(check, st.lists(pieces, max_size=10), examples=10, effort=min(effort, 10))
