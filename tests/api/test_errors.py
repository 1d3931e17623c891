"""Each refusal has upstream's words, code and shape."""

from __future__ import annotations

import pytest

from pybernetes.api import errors, field
from pybernetes.api.errors import APIError

CASES = [
    (errors.BadRequest("what?"), 400, "BadRequest", "what?", None),
    (errors.Unauthorized(), 401, "Unauthorized", "Unauthorized", None),
    (
        errors.Forbidden("", "pods", "x", "no"),
        403,
        "Forbidden",
        'pods "x" is forbidden: no',
        {"name": "x", "kind": "pods"},
    ),
    (
        errors.Forbidden("apps", "deployments", "", "no"),
        403,
        "Forbidden",
        "deployments.apps is forbidden: no",
        {"group": "apps", "kind": "deployments"},
    ),
    (
        errors.Forbidden.request("u", "get", "", "pods", namespace="ns", name="x"),
        403,
        "Forbidden",
        'pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "ns"',
        {"name": "x", "kind": "pods"},
    ),
    (
        errors.Forbidden.request("u", "update", "apps", "deployments", "scale", why="because"),
        403,
        "Forbidden",
        'deployments.apps is forbidden: User "u" cannot update resource "deployments/scale" in API group "apps"'
        " at the cluster scope: because",
        {"group": "apps", "kind": "deployments"},
    ),
    (
        errors.Forbidden.path("<u>", "get", "/x", why="<no>"),
        403,
        "Forbidden",
        'forbidden: User "&lt;u&gt;" cannot get path "/x": <no>',
        {},
    ),
    (errors.NotFound("", "pods", "x"), 404, "NotFound", 'pods "x" not found', {"name": "x", "kind": "pods"}),
    (errors.PathNotFound(), 404, "NotFound", "the server could not find the requested resource", {}),
    (
        errors.MethodNotSupported("apps", "deployments", "delete"),
        405,
        "MethodNotAllowed",
        'delete is not supported on resources of kind "deployments.apps"',
        {"group": "apps", "kind": "deployments"},
    ),
    (
        errors.MethodNotAllowed(),
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    ),
    (
        errors.NotAcceptable(["application/json", "application/yaml"]),
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
        None,
    ),
    (
        errors.NotAcceptable(["application/json"], "meta.k8s.io/v1, Kind=Table"),
        406,
        "NotAcceptable",
        "only the following media types are accepted when converting to meta.k8s.io/v1, Kind=Table: application/json",
        None,
    ),
    (
        errors.AlreadyExists("apps", "deployments", "x"),
        409,
        "AlreadyExists",
        'deployments.apps "x" already exists',
        {"name": "x", "group": "apps", "kind": "deployments"},
    ),
    (
        errors.GenerateNameConflict("", "pods", "x-abcde"),
        409,
        "AlreadyExists",
        'pods "x-abcde" already exists, the server was not able to generate a unique name for the object',
        {"name": "x-abcde", "kind": "pods", "retryAfterSeconds": 1},
    ),
    (
        errors.Conflict("", "pods", "x"),
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods "x": the object has been modified; '
        "please apply your changes to the latest version and try again",
        {"name": "x", "kind": "pods"},
    ),
    (errors.Gone("gone"), 410, "Gone", "gone", None),
    (errors.ResourceExpired("old"), 410, "Expired", "old", None),
    (
        errors.RequestEntityTooLarge("limit is 3145728"),
        413,
        "RequestEntityTooLarge",
        "Request entity too large: limit is 3145728",
        None,
    ),
    (
        errors.UnsupportedMediaType(["application/json"]),
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json",
        None,
    ),
    (
        errors.PatchNotApplicable("no such path"),
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        {},
    ),
    (errors.TooManyRequests("later", 7), 429, "TooManyRequests", "later", {"retryAfterSeconds": 7}),
    (
        errors.InternalError("boom"),
        500,
        "InternalError",
        "Internal error occurred: boom",
        {"causes": [{"message": "boom"}]},
    ),
    (
        errors.ServerTimeout("apps", "deployments", "create", 2),
        500,
        "ServerTimeout",
        "The create operation against deployments.apps could not be completed at this time, please try again.",
        {"name": "create", "group": "apps", "kind": "deployments", "retryAfterSeconds": 2},
    ),
    (errors.ServiceUnavailable("not yet"), 503, "ServiceUnavailable", "not yet", None),
    (errors.Timeout("slow"), 504, "Timeout", "Timeout: slow", {}),
    (
        errors.TooLargeResourceVersion(9, 4),
        504,
        "Timeout",
        "Timeout: Too large resource version: 9, current: 4",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    ),
]


@pytest.mark.parametrize(("error", "code", "reason", "message", "details"), CASES, ids=lambda v: type(v).__name__)
def test_each_error_is_the_status_upstream_sends(
    error: APIError, code: int, reason: str, message: str, details: dict[str, object] | None
) -> None:
    want = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    want |= {"message": message, "reason": reason} | ({} if details is None else {"details": details}) | {"code": code}
    assert error.status() == want
    assert list(error.status()) == list(want)
    assert str(error) == message


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case[0]).__name__)
def test_a_status_becomes_an_exception_of_its_reason_again(case: tuple[APIError, int, str, str, object]) -> None:
    error = case[0]
    again = errors.from_status(error.status())
    assert again.status() == error.status()
    assert isinstance(error, type(again))


def test_an_unknown_reason_becomes_the_base_class() -> None:
    assert type(errors.from_status({"code": 418, "message": "teapot"})) is APIError


def test_invalid_names_the_one_field() -> None:
    error = errors.Invalid("", "Pod", "x", [field.required("spec.containers")])
    assert error.message == 'Pod "x" is invalid: spec.containers: Required value'
    assert error.details == {
        "name": "x",
        "kind": "Pod",
        "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}],
    }


def test_invalid_lists_several_fields_and_drops_repetitions_from_the_message_only() -> None:
    once, other = field.required("a"), field.forbidden("b", "no")
    error = errors.Invalid("apps", "Deployment", "x", [once, other, once])
    assert error.message == 'Deployment.apps "x" is invalid: [a: Required value, b: Forbidden: no]'
    assert len(error.causes) == 3
    same = errors.Invalid("apps", "Deployment", "x", [once, once])
    assert same.message == 'Deployment.apps "x" is invalid: a: Required value'


def test_invalid_without_fields_says_only_that() -> None:
    assert errors.Invalid("", "Pod", "x").message == 'Pod "x" is invalid'


def test_retry_after_is_what_the_details_say() -> None:
    assert errors.TooManyRequests("later", 7).retry_after == 7
    assert errors.BadRequest("no").retry_after == 0
