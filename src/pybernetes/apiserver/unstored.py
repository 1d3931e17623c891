"""Resources that are answered and not stored (`Resource.stored` is false): which function answers each.

The functions are named, not imported: a module is loaded with the first request for its resources.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import cast

from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response

from .registry.registry import Registry

Handler = Callable[[Registry, Resource, Request], Awaitable[Response]]
HANDLERS = {
    ("core", "bindings"): ("subresources.binding", "bindings"),
    ("core", "componentstatuses"): ("component_status", "answer_component_statuses"),
    ("authentication", "tokenreviews"): ("reviews.authentication", "token_reviews"),
    ("authentication", "selfsubjectreviews"): ("reviews.authentication", "self_subject_reviews"),
    ("authorization", "subjectaccessreviews"): ("reviews.authorization", "subject_access_reviews"),
    ("authorization", "localsubjectaccessreviews"): ("reviews.authorization", "subject_access_reviews"),
    ("authorization", "selfsubjectaccessreviews"): ("reviews.authorization", "self_subject_access_reviews"),
    ("authorization", "selfsubjectrulesreviews"): ("reviews.authorization", "self_subject_rules_reviews"),
    ("metrics", "nodes"): ("metrics_api.resources", "nodes"),
    ("metrics", "pods"): ("metrics_api.resources", "pods"),
}
"""Module and function, by the package of the kind (`Resource.package`) and the resource's plural name."""


def handler(resource: Resource) -> Handler:
    """The function that answers requests for a resource that is not stored."""
    module, name = HANDLERS[resource.package, resource.plural]
    return cast(Handler, getattr(import_module(f"{__package__}.{module}"), name))
