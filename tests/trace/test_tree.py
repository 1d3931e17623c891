"""Spans become a tree: by parents, and by who wrote the revision that woke whom."""

from __future__ import annotations

from typing import Any

from pybernetes.trace.otlp import of_trees
from pybernetes.trace.page import render as page
from pybernetes.trace.span import Span
from pybernetes.trace.text import excerpt, render
from pybernetes.trace.tree import Spans, begun_by_users, mark_critical

MS = 1_000_000


def span(name: str, start: int, end: int, trace: str = "t", parent: str = "", **more: Any) -> Span:
    return Span(trace, name, parent, name, "test", start * MS, end * MS, **more)


def example() -> list[Span]:
    """kubectl creates a Deployment; the controller, woken by its revision, creates a ReplicaSet."""
    return [
        span("command", 0, 10),
        span("create deployment", 2, 5, parent="command", revisions=[41]),
        span("reconcile deployment", 6, 12, "u", causes=[41]),
        span("create replicaset", 7, 9, "u", parent="reconcile deployment", revisions=[42]),
        span("reconcile replicaset", 10, 30, "v", causes=[42, 41]),
        span("of another client", 1, 2, "w", revisions=[40]),
        span("woken by both", 40, 50, "x", causes=[40, 42]),
    ]


def test_a_command_and_all_that_came_of_it_is_one_tree() -> None:
    (root,) = Spans(example()).trees(lambda each: each.name == "command")
    parents = {node.span.name: node.parent and node.parent.span.name for node in root.walk()}
    assert parents == {
        "command": None,
        "create deployment": "command",
        "reconcile deployment": "create deployment",
        "create replicaset": "reconcile deployment",
        "reconcile replicaset": "create replicaset",
        "woken by both": "create replicaset",
    }
    links = {node.span.name: [each.span.name for each in node.links] for node in root.walk() if node.links}
    assert links == {"reconcile replicaset": ["create deployment"]}


def test_a_span_without_a_known_cause_begins_a_tree() -> None:
    spans = Spans([*example(), span("orphan", 3, 4, causes=[1])])
    assert [root.span.name for root in spans.trees()] == ["command", "of another client", "orphan"]
    found = spans.root_of(next(each for each in spans.by_id.values() if each.name == "reconcile replicaset"))
    assert found.name == "command"


def test_the_critical_path_ends_with_what_ended_last() -> None:
    (root,) = Spans(example()[:5]).trees()
    assert mark_critical(root).span.name == "reconcile replicaset"
    assert [node.span.name for node in root.walk() if node.critical] == [
        "command",
        "create deployment",
        "reconcile deployment",
        "create replicaset",
        "reconcile replicaset",
    ]


def test_self_time_is_the_time_without_children() -> None:
    spans = [
        span("a", 0, 100),
        span("b", 10, 40, parent="a"),
        span("c", 30, 60, parent="a"),
        span("d", 90, 200, parent="a"),
    ]
    (root,) = Spans(spans).trees()
    assert root.self_time == (10 + 30 + 0) * MS


def test_causes_that_name_each_other_make_no_circle() -> None:
    one = span("one", 5, 9, revisions=[1], causes=[2])
    two = span("two", 5, 9, "u", revisions=[2], causes=[1])
    (root,) = Spans([one, two]).trees()
    assert [node.span.name for node in root.walk()] == ["one", "two"]


def test_what_has_ended_replaces_what_was_going_on() -> None:
    (root,) = Spans([span("a", 0, 9), Span("t", "a", "", "a", "test", 0, 0)]).trees()
    assert root.span.end == 9 * MS


def test_text_shows_times_objects_and_stages() -> None:
    stages = [(3 * MS, "authenticated", ""), (4 * MS, "stored", "")]
    spans = [
        span("command", 0, 10),
        span(
            "create deployments", 2, 5, parent="command", revisions=[41], marks=stages,
            attributes={"object": "/registry/deployments/default/web", "code": 201},
        ),
        span("reconcile", 6, 7, causes=[41], error="conflict", marks=[(6 * MS, "ScalingReplicaSet", "to 2")]),
    ]  # fmt: skip
    text = "\n".join(render(Spans(spans).trees()))
    assert "trace t: 3 spans of 1 component in 10.0 ms" in text
    assert "└─ create deployments default/web  → revision 41" in text
    assert "authenticated 1.0, stored 1.0 ms" in text
    assert "└─ reconcile  ✗ conflict" in text
    assert "6.0 ms ScalingReplicaSet: to 2" in text


def test_an_excerpt_has_the_newest_trees_and_who_began_them() -> None:
    spans = [
        span("create pods", 0, 1, attributes={"code": 201, "user": "jane", "agent": "kubectl/v1.36"}),
        span("patch nodes", 1, 2, attributes={"code": 200, "user": "system:node:one"}),
        span("delete pods", 2, 3, revisions=[7], attributes={"code": 200, "user": "jane", "agent": "kopf/1.37"}),
        span("reconcile replicaset", 4, 5, causes=[7]),
    ]
    trees = begun_by_users(Spans(spans).trees())
    text = excerpt(trees, 20)
    assert [each.partition("  by ")[2] for each in text if "  by " in each] == ["kubectl", "kopf"]
    assert not any("nodes" in each for each in text)
    assert "create pods" not in "".join(excerpt(trees, 4))
    assert excerpt(trees, 2)[-1] == "... and 2 more lines"


def test_json_has_one_trace_and_no_orphan() -> None:
    found = of_trees(Spans(example()).trees(lambda each: each.name == "command"))
    assert {each["traceId"] for each in found} == {"t"}
    ids = {each["spanId"] for each in found}
    assert [each["spanId"] for each in found if each["parentSpanId"] not in ids] == ["command"]
    assert found[0]["startTimeUnixNano"] == "0"


def test_a_page_shows_no_markup_of_others() -> None:
    text = page(Spans([span("<script>alert(1)</script>", 0, 1, error="<b>")]).trees())
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
