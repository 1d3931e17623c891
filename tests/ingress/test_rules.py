"""What Ingresses mean: hosts, paths, annotations, which rule wins."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingress.proxy import ingress

from pybernetes.client.keys import Key
from pybernetes.ingress.annotations import PREFIX, SUPPORTED, parse
from pybernetes.ingress.routes import BadPath, Routes, escaped, normal, rewritten
from pybernetes.ingress.rules import compile_ingress

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def routes(*made) -> Routes:  # type: ignore[no-untyped-def]
    found = Routes()
    for each in made:
        found.put(compile_ingress(each))
    return found


def target(found: Routes, path: str, host: str = "") -> str:
    rule = found.find(host, path)
    return "" if rule is None or rule.backend is None else rule.backend.service


@pytest.mark.parametrize(
    ("kind", "rule", "path", "fits"),
    [
        # The table of the documentation of Ingress.
        ("Prefix", "/", "/anything", True),
        ("Exact", "/foo", "/foo", True),
        ("Exact", "/foo", "/bar", False),
        ("Exact", "/foo", "/foo/", False),
        ("Exact", "/foo/", "/foo", False),
        ("Prefix", "/foo", "/foo", True),
        ("Prefix", "/foo", "/foo/", True),
        ("Prefix", "/foo/", "/foo", True),
        ("Prefix", "/foo/", "/foo/", True),
        ("Prefix", "/aaa/bb", "/aaa/bbb", False),
        ("Prefix", "/aaa/bbb", "/aaa/bbb", True),
        ("Prefix", "/aaa/bbb/", "/aaa/bbb", True),
        ("Prefix", "/aaa/bbb", "/aaa/bbb/", True),
        ("Prefix", "/aaa/bbb", "/aaa/bbb/ccc", True),
        ("Prefix", "/aaa/bbb", "/aaa/bbbxyz", False),
        ("ImplementationSpecific", "/foo", "/foo/bar", True),
        ("ImplementationSpecific", "/foo", "/foobar", False),
    ],
)
def test_paths_fit_as_the_documentation_says(kind: str, rule: str, path: str, fits: bool) -> None:
    assert (target(routes(ingress("a", (rule, kind, "web"))), path) == "web") is fits


def test_the_longest_path_wins_and_an_exact_one_before_all() -> None:
    found = routes(
        ingress(
            "a",
            ("/", "Prefix", "root"),
            ("/aaa", "Prefix", "aaa"),
            ("/aaa/bbb", "Prefix", "bbb"),
            ("/aaa/bbb", "Exact", "exact"),
        )
    )
    wanted = {"/ccc": "root", "/aaa/ccc": "aaa", "/aaa/bbb/c": "bbb", "/aaa/bbb": "exact", "/aaa/bbb/": "bbb"}
    assert {path: target(found, path) for path in wanted} == wanted


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("foo.bar.com", "exact"),
        ("baz.bar.com", "wild"),
        ("a.baz.bar.com", "any"),
        ("bar.com", "any"),
        ("", "any"),
    ],
)
def test_a_wildcard_is_for_one_label_and_the_very_host_wins(host: str, wanted: str) -> None:
    found = routes(
        ingress("a", ("/", "Prefix", "exact"), host="foo.bar.com"),
        ingress("b", ("/", "Prefix", "wild"), host="*.bar.com"),
        ingress("c", ("/", "Prefix", "any")),
    )
    assert target(found, "/", host) == wanted


def test_default_backends_serve_what_no_rule_fits() -> None:
    found = routes(
        ingress("a", ("/x", "Exact", "x"), host="a.example", default="own"),
        ingress("b", ("/x", "Exact", "x"), host="b.example"),
        ingress("c", default="new", created=NEW),
        ingress("d", default="old", created=OLD),
    )
    assert target(found, "/y", "a.example") == "own"
    assert target(found, "/y", "b.example") == "old"
    assert target(found, "/x", "elsewhere") == "old"
    found.remove(Key("default", "d"))
    assert target(found, "/y", "b.example") == "new"


def test_of_equal_paths_the_oldest_ingress_wins_in_any_order_of_arrival() -> None:
    both = [
        ingress("z", ("/", "Prefix", "old"), host="a.example", created=OLD),
        ingress("a", ("/", "Prefix", "new"), host="a.example", created=NEW),
    ]
    for order in (both, both[::-1]):
        found = routes(*order)
        assert target(found, "/", "a.example") == "old"
        found.remove(Key("default", "z"))
        assert target(found, "/", "a.example") == "new"
        found.remove(Key("default", "a"))
        assert found.find("a.example", "/") is None


def test_a_changed_ingress_leaves_its_former_hosts() -> None:
    found = routes(ingress("a", ("/", "Prefix", "one"), host="a.example"))
    found.put(compile_ingress(ingress("a", ("/", "Prefix", "two"), host="b.example")))
    assert (target(found, "/", "a.example"), target(found, "/", "b.example")) == ("", "two")


def test_patterns_are_for_paths_of_their_type_with_the_annotation_and_the_longest_wins() -> None:
    found = routes(
        ingress(
            "a",
            ("/v[0-9]+/.*", "ImplementationSpecific", "versions"),
            ("/v1/special.*", "ImplementationSpecific", "special"),
            ("/v1", "Prefix", "plain"),
            annotations={"use-regex": "true"},
        ),
    )
    wanted = {"/v1": "plain", "/v1/x": "versions", "/V22/x": "versions", "/v1/special/x": "special", "/w": ""}
    assert {path: target(found, path) for path in wanted} == wanted


@pytest.mark.parametrize("pattern", ["/(unclosed", "/a{99999}", "/" + "x" * 5000, "/(?=look)", "/(a{1000}){1000}"])
def test_a_bad_pattern_leaves_out_its_path_alone_and_is_a_problem(pattern: str) -> None:
    made = ingress(
        "a", (pattern, "ImplementationSpecific", "bad"), ("/good", "Prefix", "good"), annotations={"use-regex": "true"}
    )
    compiled = compile_ingress(made)
    assert len(compiled.problems) == 1
    assert "is left out" in compiled.problems[0]
    assert target(routes(made), "/good") == "good"


def test_a_pattern_that_would_keep_other_engines_busy_costs_little() -> None:
    found = routes(ingress("a", ("/(a+)+b", "ImplementationSpecific", "web"), annotations={"use-regex": "true"}))
    began = time.process_time()
    assert target(found, "/" + "a" * 30_000) == ""
    assert time.process_time() - began < 1.0


def test_many_rules_and_deep_paths_cost_little() -> None:
    paths = [(f"/p{number}/{'x/' * (number % 50)}", "Prefix", f"s{number}") for number in range(5000)]
    found = routes(ingress("a", *paths))
    began = time.process_time()
    for _ in range(100):
        assert target(found, "/p7/x/x/x/x/x/x/x") == "s7"
        assert target(found, "/" + "y/" * 15_000) == ""
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/a/b", "/a/b"),
        ("//a///b", "/a/b"),
        ("/a/./b/", "/a/b/"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/%61/b%2Fc", "/a/b/c"),
        ("/.hidden", "/.hidden"),
        ("/a/..", "/"),
        ("/%E4%B8%AD", "/中"),
    ],
)
def test_paths_are_compared_in_their_normal_form(path: str, wanted: str) -> None:
    assert normal(path) == wanted


@pytest.mark.parametrize("path", ["/..", "/a/../..", "/%2e%2e/x", "/a%00b"])
def test_paths_out_of_the_root_are_refused(path: str) -> None:
    with pytest.raises(BadPath):
        normal(path)


@given(st.text())
def test_whatever_a_path_holds_it_may_stand_in_a_first_line(text: str) -> None:
    line = escaped(f"/{text}")
    assert line.isascii()
    assert not any(each <= " " or each in "?#" for each in line)


def test_groups_of_a_pattern_are_put_into_the_target() -> None:
    notes = {"rewrite-target": "/x/$2?from=$1&none=$9"}
    rule = routes(ingress("a", ("/([a-z]+)/(.*)", "ImplementationSpecific", "w"), annotations=notes)).find(
        "", "/ab/c d"
    )
    assert rule is not None
    assert rewritten(rule, "/ab/c d?") == "/x/c%20d%3F?from=ab&none="
    plain = routes(ingress("a", ("/foo", "Prefix", "w"), annotations={"rewrite-target": "bar"})).find("", "/foo/x")
    assert plain is not None
    assert rewritten(plain, "/foo/x") == "/bar"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl-redirect", "maybe"),
        ("proxy-read-timeout", "-1"),
        ("proxy-read-timeout", "9999999"),
        ("proxy-body-size", "much"),
        ("permanent-redirect", "https://a.example/\r\nSet-Cookie: x"),
        ("temporal-redirect", "javascript:alert(1)"),
        ("permanent-redirect-code", "200"),
        ("app-root", "app"),
        ("rewrite-target", "/a b"),
        ("upstream-vhost", "a\nb"),
        ("backend-protocol", "GRPC"),
        ("x-forwarded-prefix", "a"),
        ("use-regex", "\x00"),
        ("configuration-snippet", "deny all;"),
    ],
)
def test_annotations_that_mean_nothing_are_problems_without_effect(name: str, value: str) -> None:
    options, problems = parse({PREFIX + name: value})
    assert len(problems) == 1
    assert name in problems[0]
    assert options == parse({})[0]


def test_every_supported_annotation_is_documented() -> None:
    with open("docs/ingress.md") as file:
        text = file.read()
    assert [name for name in SUPPORTED if f"`{name}`" not in text] == []


def test_backends_that_are_no_services_are_problems() -> None:
    made = ingress("a", ("/", "Prefix", "web"))
    made.spec.rules[0].http.paths[0].backend.service = None
    compiled = compile_ingress(made)
    assert compiled.problems == ("a backend that is not a port of a Service cannot be served",)
    rule = routes(made).find("", "/")
    assert rule is not None
    assert rule.backend is None
