"""Impersonation: `Impersonate-User`, `-Uid`, `-Group` and `-Extra-*`, each of which takes a permission.

There are several ways to be allowed, tried in this order (upstream's constrained impersonation):

    associated-node, arbitrary-node, serviceaccount, user-info    the verbs `impersonate:MODE` on who one wants to be,
                                                                  and `impersonate-on:MODE:VERB` on what one wants to do
    legacy                                                        the verb `impersonate`, for whatever one does then

From here on the request is that of the other user; what it may do is asked for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from pybernetes.api.errors import BadRequest, Forbidden
from pybernetes.api.field import aggregate, invalid
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.names import is_dns1123_label, is_dns1123_subdomain, is_http_path
from pybernetes.net.http import Answer, Handler, Request, Response
from pybernetes.net.messages import NOSNIFF, as_utf8

from ..authn.authenticator import extra_key
from ..authn.serviceaccount import NODE_NAME, USER_PREFIX
from ..authz.authorizer import Authorizer, Authorizers
from ..authz.union import forbidden, require
from ..requestinfo import RequestInfo
from ..user import AUTHENTICATED, UNAUTHENTICATED, User

_EXTRA = "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_NODE_PREFIX = "system:node:"
_NODES = "system:nodes"
_MASTERS = "system:masters"
_ANONYMOUS = "system:anonymous"
_MANY = 4  # values from which on a permission for all of them is asked for first; upstream's
_TAKEN = 10_000  # users of whom that is remembered; upstream's

Ask = Callable[[RequestInfo], Awaitable[object]]
"""Returns if the one who asks may. Raises Forbidden."""


class Impersonation:
    """Puts the impersonated user in the place of the one who asked, if that one may."""

    def __init__(self, next_: Handler, source: Authorizers) -> None:
        self._next = next_
        self._source = source
        self._taken: dict[str, str] = {}  # the mode in which a user last became another

    def __call__(self, request: Request) -> Answer:
        if request.head is not None and request.head.plain:
            return self._next(request)
        return self._look(request)

    async def _look(self, request: Request) -> Response | None:
        asked = [name for name in request.headers if name.startswith("impersonate-")]
        if asked:
            wanted = wanted_user(request)
            if wanted is not None:
                for name in asked:
                    del request.headers[name]
                request.user, mode = await self._become(wanted, request.user, request.info)
                if request.audit is not None:
                    request.audit.impersonated(request.user, f"impersonate:{mode}" if mode else "")
        return await self._next(request)

    async def _become(self, wanted: User, requestor: User, info: RequestInfo) -> tuple[User, str]:
        """The user to go on as, and in which mode.

        Raises Forbidden, with what was lacking for the way that the requestor took last, else for the first.
        """
        refusals: dict[str, Forbidden] = {}
        authorizers = self._source.authorizers
        for mode in modes(wanted, requestor):
            try:
                user = await self._try(mode, wanted, requestor, info, authorizers)
            except Forbidden as refused:
                refusals[mode] = refused
                continue
            self._remember(requestor.name, mode)
            return user, mode
        last = self._taken.get(requestor.name)
        raise refusals[last] if last in refusals else next(iter(refusals.values()))

    def _remember(self, name: str, mode: str) -> None:
        taken = self._taken
        if taken.get(name) != mode:
            if len(taken) >= _TAKEN:
                del taken[next(iter(taken))]
            taken[name] = mode

    async def _try(
        self, mode: str, wanted: User, requestor: User, info: RequestInfo, authorizers: Sequence[Authorizer]
    ) -> User:
        if mode == "associated-node":
            # What is allowed must not depend on the node: it is the requestor's own, whichever that is.
            keys = {"authentication.kubernetes.io/associated-node-keys": sorted(requestor.extra)}
            requestor = msgspec.structs.replace(requestor, extra=keys)

        async def ask(question: RequestInfo) -> object:
            return await require(authorizers, requestor, question)

        if mode:
            await ask(msgspec.structs.replace(info, verb=f"impersonate-on:{mode}:{info.verb}"))
        return await Check(mode, requestor, ask).user(wanted)


def wanted_user(request: Request) -> User | None:
    """The impersonated user, without implied groups; None without such headers. Raises BadRequest."""
    name, uid = as_utf8(request.first("impersonate-user")), as_utf8(request.first("impersonate-uid"))
    groups = tuple(map(as_utf8, request.values("impersonate-group")))
    extra: dict[str, list[str]] = {}
    for header in request.headers:
        if header.startswith(_EXTRA):
            values = extra.setdefault(extra_key(header.removeprefix(_EXTRA)), [])
            values.extend(map(as_utf8, request.values(header)))
    if name:
        return User(name, uid, groups, extra)
    if uid or groups or extra:
        error = BadRequest(f"requested {_go_syntax(uid, groups, extra)} without impersonating a user name")
        error.headers = (NOSNIFF,)
        raise error
    return None


def modes(wanted: User, requestor: User) -> list[str]:
    """The modes of impersonation that apply; the empty one is the unconstrained one, which always applies."""
    node, account = node_name(wanted.name), service_account(wanted.name)
    only_name = not (wanted.uid or wanted.groups or wanted.extra)
    found = []
    if only_name and node and service_account(requestor.name) and requestor.extra.get(NODE_NAME) == [node]:
        found.append("associated-node")
    if only_name and node:
        found.append("arbitrary-node")
    if only_name and account:
        found.append("serviceaccount")
    if not node and not account:
        found.append("user-info")
    return [*found, ""]


class Check:
    """The permissions needed to impersonate a user, in one of the modes."""

    def __init__(self, mode: str, requestor: User, ask: Ask) -> None:
        self._mode = mode
        self._verb = f"impersonate:{mode}" if mode else "impersonate"
        self._group = _AUTHENTICATION if mode else ""
        self._requestor = requestor
        self._ask = ask

    async def user(self, wanted: User) -> User:
        """The user, with all groups. Raises Forbidden."""
        groups = await self._name(wanted)
        if wanted.uid:
            await self._ask(self._question("uids", wanted.uid, group=_AUTHENTICATION))
        if wanted.groups:
            await self._groups(wanted.groups)
        if wanted.extra:
            await self._extra(wanted.extra)
        usual = UNAUTHENTICATED if wanted.name == _ANONYMOUS else AUTHENTICATED
        if usual not in groups and UNAUTHENTICATED not in groups:
            groups = (*groups, usual)
        return User(wanted.name, wanted.uid, groups, wanted.extra)

    async def _name(self, wanted: User) -> tuple[str, ...]:
        question = self._question("users", wanted.name)
        groups = wanted.groups
        node, account = node_name(wanted.name), service_account(wanted.name)
        if self._mode and node:
            question = self._question("nodes", "*" if self._mode == "associated-node" else node)
            groups = (_NODES,)
        if account:
            namespace, name = account
            question = self._question("serviceaccounts", name)
            question.namespace = namespace
            groups = groups or ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        await self._ask(question)
        return groups

    async def _groups(self, groups: Sequence[str]) -> None:
        if self._mode:
            if "" in groups:
                raise self._refuse("groups", "", "impersonating the empty string group is not allowed")
            if _MASTERS in groups:
                raise self._refuse("groups", _MASTERS, f"impersonating the {_MASTERS} group is not allowed")
            if len(groups) >= _MANY and await self._may(self._question("groups", "*")):
                return
        for group in groups:
            await self._ask(self._question("groups", group))

    async def _extra(self, extra: dict[str, list[str]]) -> None:
        if self._mode:
            problem = _problem(extra)
            if problem:
                raise self._refuse("userextras", "", problem)
            many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
            if many and await self._may(self._extra_question("*", "*")):
                return
        for key, values in extra.items():
            for value in values:
                await self._ask(self._extra_question(key, value))

    async def _may(self, question: RequestInfo) -> bool:
        try:
            await self._ask(question)
        except Forbidden:
            return False
        return True

    def _question(self, resource: str, name: str, *, group: str | None = None) -> RequestInfo:
        group = self._group if group is None else group
        return RequestInfo("", self._verb, {}, True, group, "v1", resource, "", "", name)

    def _extra_question(self, key: str, value: str) -> RequestInfo:
        question = self._question("userextras", value, group=_AUTHENTICATION)
        question.subresource = key
        return question

    def _refuse(self, resource: str, name: str, why: str) -> Forbidden:
        group = _AUTHENTICATION if resource == "userextras" else None
        return forbidden(self._requestor, self._question(resource, name, group=group), why)


def service_account(user: str) -> tuple[str, str] | None:
    """The namespace and name of the account that a user is; None for others."""
    parts = user.removeprefix(USER_PREFIX).split(":")
    if not user.startswith(USER_PREFIX) or len(parts) != 2:
        return None
    namespace, name = parts
    return None if is_dns1123_label(namespace) or is_dns1123_subdomain(name) else (namespace, name)


def node_name(user: str) -> str:
    """The name of the node that a user is; empty for others."""
    name = user.removeprefix(_NODE_PREFIX)
    return name if user.startswith(_NODE_PREFIX) and not is_dns1123_subdomain(name) else ""


def _problem(extra: dict[str, list[str]]) -> str:
    """The error in extra values, with upstream's wording; empty if there is none."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        domain, _, path = key.partition("/")
        problems = [invalid("extra.key", domain, each) for each in is_dns1123_subdomain(domain)]
        problems += [invalid("extra.key", path, each) for each in is_http_path(path)]
        if not domain or not path:
            problems = [invalid("extra.key", key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
        if problems:
            return f"impersonating an invalid key in extra is not allowed: {aggregate(problems)}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _go_syntax(uid: str, groups: Sequence[str], extra: dict[str, list[str]]) -> str:
    def texts(values: Sequence[str]) -> str:
        return "[]string{" + ", ".join(map(quote, values)) + "}" if values else "[]string(nil)"

    pairs = ", ".join(f"{quote(key)}:{texts(values)}" for key, values in sorted(extra.items()))
    shown = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote(uid)}, Groups:{texts(groups)}, Extra:{shown}}}'
