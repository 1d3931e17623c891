"""Acting as somebody else: `Impersonate-User`, `-Group`, `-Uid`, `-Extra-*`, each of which takes a permission.

From here on the request is that of the other user; what it may do is asked for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from pybernetes.api.errors import BadRequest

from ..authn.user import AUTHENTICATED, UNAUTHENTICATED, User
from ..authz.authorizer import Authorizer
from ..authz.union import require
from ..http import Handler, Request, Response
from ..requestinfo import RequestInfo

_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"


class Impersonation:
    """Puts the impersonated user in the place of the one who asked, if that one may."""

    def __init__(self, next_: Handler, authorizers: Sequence[Authorizer]) -> None:
        self._next = next_
        self._authorizers = authorizers

    async def __call__(self, request: Request) -> Response | None:
        asked = [name for name in request.headers if name.startswith("impersonate-")]
        if asked:
            user, questions = impersonated({name: request.headers[name] for name in asked})
            for question in questions:
                await require(self._authorizers, request.user, question)
            request.user = user
            for name in asked:
                del request.headers[name]
        return await self._next(request)


def impersonated(headers: dict[str, str]) -> tuple[User, list[RequestInfo]]:
    """The user that the headers describe, and what one must be allowed to be them. Raises BadRequest."""
    name = headers.get("impersonate-user", "")
    groups = [group.strip() for group in headers.get("impersonate-group", "").split(",") if group.strip()]
    uid = headers.get("impersonate-uid", "")
    extra = {unquote(key.removeprefix(_EXTRA)): [value] for key, value in headers.items() if key.startswith(_EXTRA)}
    if not name:
        raise BadRequest(f"requested {sorted(headers)} without impersonating a user name")
    questions: list[RequestInfo] = []
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if name.startswith(_ACCOUNT) and account:
        questions.append(_question("", "serviceaccounts", account, namespace))
        groups = groups or ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    else:
        questions.append(_question("", "users", name))
    if "impersonate-group" in headers:
        questions += [_question("", "groups", group) for group in groups]
    questions += [
        _question(_AUTHENTICATION, "userextras", value, subresource=key)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        questions.append(_question(_AUTHENTICATION, "uids", uid))
    anonymous = name == "system:anonymous"
    usual = UNAUTHENTICATED if anonymous else AUTHENTICATED
    if UNAUTHENTICATED not in groups and usual not in groups:
        groups.append(usual)
    return User(name, uid, tuple(groups), extra), questions


def _question(group: str, resource: str, name: str, namespace: str = "", subresource: str = "") -> RequestInfo:
    return RequestInfo("", "impersonate", {}, True, group, "v1", resource, subresource, namespace, name)
