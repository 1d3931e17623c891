"""`authorizer`: what a user may do, asked from inside an expression.

Expressions run to their end without waiting, but an authorizer may have to ask a webhook. So `check` looks the answer
up in what is known, and raises `Undecided` if it is not; the caller asks, remembers, and evaluates again (`Decisions`).
Every question is thereby asked once for a request, which upstream does too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import names
from ..functions import Library, method
from ..types import BOOL, STRING, Type
from ..values import EvaluationError, Opaque

AUTHORIZER = Type("object", "kubernetes.authorization.Authorizer", fields={})
PATH_CHECK = Type("object", "kubernetes.authorization.PathCheck", fields={})
GROUP_CHECK = Type("object", "kubernetes.authorization.GroupCheck", fields={})
RESOURCE_CHECK = Type("object", "kubernetes.authorization.ResourceCheck", fields={})
DECISION = Type("object", "kubernetes.authorization.Decision", fields={})
TYPES = {type.name: type for type in (AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION)}


class Question(NamedTuple):
    """Whether a user may do something. `user` None is the request's, else (namespace, name) of an account."""

    user: tuple[str, str] | None
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Answer(NamedTuple):
    """The authorizer's answer."""

    allowed: bool
    reason: str = ""
    error: str = ""


class Undecided(Exception):
    """An answer is needed before the expression can go on."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


class Decisions:
    """The answers known so far for one request."""

    def __init__(self) -> None:
        self.answers: dict[Question, Answer] = {}

    def ask(self, question: Question) -> Answer:
        """The answer, or Undecided."""
        found = self.answers.get(question)
        if found is None:
            raise Undecided(question)
        return found


class AuthorizerValue(Opaque):
    """`authorizer`, or one acting as a service account."""

    __slots__ = ("decisions", "user")
    cel_type = AUTHORIZER

    def __init__(self, decisions: Decisions, user: tuple[str, str] | None = None) -> None:
        self.decisions = decisions
        self.user = user

    def resource_check(self, group: str, resource: str, **more: str) -> Check:
        """`authorizer.requestResource`: a check that already knows the request's resource."""
        return Check(self.decisions, Question(self.user, "", group=group, resource=resource, **more), RESOURCE_CHECK)


class Check(Opaque):
    """A question that is not complete yet."""

    __slots__ = ("cel_type", "decisions", "question")

    def __init__(self, decisions: Decisions, question: Question, cel_type: Type) -> None:
        self.decisions = decisions
        self.question = question
        self.cel_type = cel_type

    def having(self, **more: str) -> Check:
        """The same with more known."""
        changed: Any = more
        return Check(self.decisions, self.question._replace(**changed), RESOURCE_CHECK)


class DecisionValue(Opaque):
    """An answer inside an expression."""

    __slots__ = ("answer",)
    cel_type = DECISION

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def _path(authorizer: AuthorizerValue, path: str) -> Check:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return Check(authorizer.decisions, Question(authorizer.user, "", path=path), PATH_CHECK)


def _group(authorizer: AuthorizerValue, group: str) -> Check:
    return Check(authorizer.decisions, Question(authorizer.user, "", group=group), GROUP_CHECK)


def _service_account(authorizer: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if names.name_is_dns_subdomain(name, False):
        raise EvaluationError("Invalid service account name")
    if names.name_is_dns_label(namespace, False):
        raise EvaluationError("Invalid service account namespace")
    return AuthorizerValue(authorizer.decisions, (namespace, name))


def _resource(check: Check, resource: str) -> Check:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return check.having(resource=resource)


def _check(check: Check, verb: str) -> DecisionValue:
    return DecisionValue(check.decisions.ask(check.question._replace(verb=verb)))


def _setting(field: str) -> Any:
    return lambda check, value: check.having(**{field: value})


LIBRARY: Library = {
    "path": [method("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _path)],
    "group": [method("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _group)],
    "serviceAccount": [method("authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _service_account)],
    "resource": [method("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _resource)],
    "check": [
        method("pathcheck_check", (PATH_CHECK, STRING), DECISION, _check),
        method("resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, _check),
    ],
    "errored": [method("decision_errored", (DECISION,), BOOL, lambda decision: bool(decision.answer.error))],
    "error": [method("decision_error", (DECISION,), STRING, lambda decision: decision.answer.error)],
    "allowed": [method("decision_allowed", (DECISION,), BOOL, lambda decision: decision.answer.allowed)],
    "reason": [method("decision_reason", (DECISION,), STRING, lambda decision: decision.answer.reason)],
}
for _name, _field, _id in (
    ("subresource", "subresource", "resourcecheck_subresource"),
    ("namespace", "namespace", "resourcecheck_namespace"),
    ("name", "name", "resourcecheck_name"),
    ("fieldSelector", "field_selector", "authorizer_fieldselector"),
    ("labelSelector", "label_selector", "authorizer_labelselector"),
):
    LIBRARY[_name] = [method(_id, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _setting(_field))]
