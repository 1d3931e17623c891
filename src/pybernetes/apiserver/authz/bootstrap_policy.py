"""The roles and bindings of every new cluster, as `roles.txt` has them: upstream's, to the letter.

Read when the server starts and forgotten afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.rbac.defaults import GROUP
from pybernetes.api.rbac.v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from pybernetes.trace.store import SPANS

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
SPAN_WRITER = "system:pybernetes:span-writer"
_CONTROLLER = "system:controller:"
_NAMESPACE = "kube-system"  # of the controllers' service accounts
_FILE = Path(__file__).with_name("roles.txt")  # by its path: importlib.resources costs 3 ms at every start

RBACObject = ClusterRole | ClusterRoleBinding | Role | RoleBinding


def bootstrap_policy() -> Iterator[RBACObject]:
    """Every role and binding; new objects at each call."""
    section = ""
    for head, lines in _paragraphs(_FILE.read_text("ascii")):
        if head.startswith("["):
            section = head.strip("[]")
            continue
        name, *words = head.split()
        if section == "clusterroles":
            yield _cluster_role(name, words, lines)
        elif section == "controllers":
            yield _cluster_role(_CONTROLLER + name, words, lines)
            yield _cluster_role_binding(_CONTROLLER + name, [f"ServiceAccount {_NAMESPACE}/{name}"])
        elif section == "clusterrolebindings":
            yield _cluster_role_binding(name, lines)
        elif section == "roles":
            yield Role(metadata=_meta(name), rules=[_rule(line) for line in lines])
        else:
            reference = RoleRef(api_group=GROUP, kind="Role", name=words[0])
            yield RoleBinding(metadata=_meta(name), subjects=[_subject(line) for line in lines], role_ref=reference)


def metrics_reader() -> ClusterRole:
    """The role system:aggregated-metrics-reader, aggregated to view, edit and admin: comes with metrics.k8s.io."""
    words = ["to:view", "to:edit", "to:admin"]
    return _cluster_role("system:aggregated-metrics-reader", words, ["get,list,watch metrics.k8s.io pods,nodes"])


def span_writers() -> list[RBACObject]:
    """Components hand in what they have done: comes with recording (`--trace-dir`)."""
    writers = ["User system:kube-controller-manager", "User system:kube-scheduler", "Group system:nodes"]
    return [
        _cluster_role(SPAN_WRITER, [], [f"post {SPANS}"]),
        _cluster_role_binding(SPAN_WRITER, writers),
    ]


def _paragraphs(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each line that is not indented, with the indented ones that follow it."""
    head, lines, unfinished = "", list[str](), False
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            if head:
                yield head, lines
            head, lines = line, []
        elif unfinished:
            lines[-1] += line.strip()
        else:
            lines.append(line.strip())
        unfinished = line.endswith(",")
    yield head, lines


def _meta(name: str, labels: dict[str, str] | None = None) -> ObjectMeta:
    namespace, slash, rest = name.partition("/")
    return ObjectMeta(
        name=rest if slash else name,
        namespace=namespace if slash else None,
        labels={"kubernetes.io/bootstrapping": "rbac-defaults", **(labels or {})},
        annotations={AUTOUPDATE: "true"},
    )


def _cluster_role(name: str, words: list[str], lines: list[str]) -> ClusterRole:
    labels = {_AGGREGATE + word.removeprefix("to:"): "true" for word in words if word.startswith("to:")}
    role = ClusterRole(metadata=_meta(name, labels))
    if "aggregates" in words:
        selector = LabelSelector(match_labels={_AGGREGATE + name: "true"})
        role.aggregation_rule = AggregationRule(cluster_role_selectors=[selector])
    else:
        role.rules = [_rule(line) for line in lines]
    return role


def _cluster_role_binding(name: str, lines: list[str]) -> ClusterRoleBinding:
    reference = RoleRef(api_group=GROUP, kind="ClusterRole", name=name)
    subjects = [_subject(line) for line in lines]
    return ClusterRoleBinding(metadata=_meta(name), subjects=subjects or None, role_ref=reference)


def _rule(line: str) -> PolicyRule:
    verbs, second, *more = [column.split(",") for column in line.split(" ")]
    if not more:
        return PolicyRule(verbs=verbs, non_resource_urls=second)
    groups = ["" if group == "core" else group for group in second]
    names = more[1] if len(more) > 1 else None
    return PolicyRule(verbs=verbs, api_groups=groups, resources=more[0], resource_names=names)


def _subject(line: str) -> Subject:
    kind, _, name = line.partition(" ")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return Subject(kind=kind, name=name, namespace=namespace)
    return Subject(kind=kind, api_group=GROUP, name=name)
