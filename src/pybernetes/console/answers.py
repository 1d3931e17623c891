"""What the page asks for beside the API: who and where the user is, and `why` of an object.

`/-/info`  context, user, namespace, server; `/-/why?resource=pods&namespace=NS&name=NAME` (`resource` with its group:
`deployments.apps`). All of it is asked of the API server with the user's rights.
"""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import parse_qs

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def answer(context: Context, method: str, path: str, query: str) -> tuple[int, dict[str, Any]]:
    """The code and the JSON for one request."""
    found = {"/-/info": _info, "/-/why": _why}.get(path)
    if found is None:
        return HTTPStatus.NOT_FOUND, {"message": f"no such question: {path}"}
    if method != "GET":
        return HTTPStatus.METHOD_NOT_ALLOWED, {"message": f"{path} is read with GET"}
    # A context of the request's own: its connection is not shared with other requests.
    own = type(context)(context.flags, context.path, context.argv)
    try:
        return HTTPStatus.OK, found(own, {name: values[-1] for name, values in parse_qs(query).items()})
    except CLIError as error:
        return HTTPStatus.UNPROCESSABLE_ENTITY, {"message": error.text()}


def _info(context: Context, query: dict[str, str]) -> dict[str, Any]:
    name, fields = context.loader.context()
    return {
        "context": name,
        "user": fields.get("user", ""),
        "namespace": context.namespace(),
        "server": context.client.config.server,
    }


def _why(context: Context, query: dict[str, str]) -> dict[str, Any]:
    from pybernetes.kubectl.builder import Builder
    from pybernetes.kubectl.commands import why

    resource, name = query.get("resource", ""), query.get("name", "")
    if not resource or not name:
        raise CLIError("`why` takes resource= and name=")
    builder = Builder(context)
    builder.namespace = query.get("namespace") or builder.namespace
    (info,) = builder.arguments([resource, name], allow_empty=False).checked()
    found = why.answer(context, info)
    return {"sentence": found.sentence, "details": list(found.details)}
