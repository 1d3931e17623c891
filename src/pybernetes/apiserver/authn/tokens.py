"""Bearer tokens: whose is it? Every kind of tokens in a row, and a short memory of the answers.

To verify a signature costs a hundred times what the rest of authentication does, so a good answer is kept for 10
seconds, as upstream keeps it; unlike upstream's, an answer about a service account is forgotten at once when the
account, pod, secret or node behind it changes (`TokenUser.holds`). Bad answers are not kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from time import monotonic
from typing import Protocol

import msgspec

from pybernetes.net.http import Request
from pybernetes.net.messages import as_utf8

from ..user import User, authenticated
from .authenticator import BadCredential, TokenAuthenticator, TokenUser

REMEMBERED = 10.0  # seconds; upstream's TokenSuccessCacheTTL
INVALID = "invalid bearer token"
_KEPT = 16384  # answers; a cluster of 100 nodes has as many pods
_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_PROTOCOL = "base64url.bearer.authorization.k8s.io."


class _UserOf(Protocol):
    async def user_of(self, token: str) -> User | None: ...


class ForThisServer:
    """A kind of tokens that knows of no audiences: they are good for those who ask for one of this server's."""

    def __init__(self, kind: _UserOf, audiences: Sequence[str]) -> None:
        self._kind = kind
        self._audiences = tuple(audiences)

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        """The user of a token. Raises BadCredential."""
        common = tuple(each for each in audiences if each in self._audiences)
        if not common:
            return None
        user = await self._kind.user_of(token)
        return None if user is None else TokenUser(user, common)


class _Known(msgspec.Struct):
    answer: TokenUser
    until: float


class Tokens:
    """All kinds of bearer tokens as one: the first that knows a token wins."""

    def __init__(self, kinds: Sequence[TokenAuthenticator], audiences: Sequence[str]) -> None:
        self.kinds = list(kinds)
        self.audiences = tuple(audiences)
        """The audiences of this server's tokens."""
        self._known: dict[str, _Known] = {}
        self._forgotten = 0
        """How often everything was forgotten."""

    def known(self, token: str) -> TokenUser | None:
        """The cached user of a token, if it is still valid."""
        known = self._known.get(token)
        if known is not None and known.until > monotonic():
            holds = known.answer.holds
            if holds is None or holds():
                return known.answer
        return None

    async def find(self, token: str) -> TokenUser | None:
        """The user of a token for this server; None if no authenticator knows it. Raises BadCredential."""
        known = self.known(token)
        if known is not None:
            return known
        began = self._forgotten
        answer = await self.review(token, self.audiences)
        if answer is None or answer.lifetime <= 0:
            self._known.pop(token, None)
            return answer
        if began != self._forgotten:  # the answer is by a configuration that is no more: good for this request alone
            return answer
        if len(self._known) >= _KEPT:
            self._make_room()
        self._known[token] = _Known(answer, monotonic() + min(REMEMBERED, answer.lifetime))
        return answer

    def _make_room(self) -> None:
        now = monotonic()
        self._known = {token: known for token, known in self._known.items() if known.until > now}
        if len(self._known) >= _KEPT // 2:  # or room would have to be made again too soon
            self._known.clear()

    def forget(self) -> None:
        """Drop the cache: keys or configuration have changed."""
        self._forgotten += 1
        self._known.clear()

    async def review(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        """The user of a token for any of the audiences, without the cache. Raises BadCredential with all reasons."""
        reasons: list[str] = []
        annotations: tuple[tuple[str, str], ...] = ()
        for kind in self.kinds:
            try:
                answer = await kind.authenticate_token(token, audiences)
            except BadCredential as bad:
                reasons.append(str(bad))
                annotations += bad.annotations
                continue
            if answer is not None:
                user = authenticated(answer.user)
                return answer if user is answer.user else msgspec.structs.replace(answer, user=user)
        if reasons:
            text = f"[{INVALID}, {', '.join(reasons)}]"  # upstream's form of several errors
            raise BadCredential(text, annotations)
        return None


class Bearer:
    """`Authorization: Bearer TOKEN`, or a token among the protocols of a WebSocket: browsers can set no header."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def authenticate(self, request: Request) -> User | Awaitable[User] | None:
        header = request.headers.get("authorization", "")
        answer = self._tokens.known(header[7:]) if header[:7] == "Bearer " else None  # the usual form, and no news
        if answer is None:
            token = _token(request)
            return self._find(request, token) if token else None
        return _used(answer, request)

    async def _find(self, request: Request, token: str) -> User:
        """The user of a token. Raises BadCredential."""
        try:
            answer = await self._tokens.find(token)
        except BadCredential as bad:
            request.annotations = bad.annotations
            raise
        if answer is None:
            raise BadCredential(INVALID)
        return _used(answer, request)


def _used(answer: TokenUser, request: Request) -> User:
    """The user; what there is to say of the token is said with the request."""
    if answer.warnings:
        request.warnings.extend(answer.warnings)
    request.annotations = answer.annotations
    return answer.user


def _token(request: Request) -> str:
    """The token that the request carries; empty if it carries none. Raises BadCredential."""
    header = as_utf8(request.first("authorization"))
    if header:
        scheme, _, rest = header.strip().partition(" ")
        if scheme.lower() != "bearer":
            return ""
        if rest[:1] == " ":
            request.warnings.append(_SPACE)
        return first_word(rest)
    return _of_websocket(request) if "sec-websocket-protocol" in request.headers else ""


def first_word(text: str) -> str:
    """The first word of a text, as the token; empty if a blank stands in front."""
    return text.rstrip().partition(" ")[0]


def _of_websocket(request: Request) -> str:
    """The token among the protocols, which is taken out of them; empty if there is none. Raises BadCredential."""
    protocols = [each.strip() for each in request.headers["sec-websocket-protocol"].split(",")]
    found = [each for each in protocols if each.startswith(_PROTOCOL)]
    if not found or request.headers.get("upgrade", "").lower() != "websocket":
        return ""
    others = [each for each in protocols if not each.startswith(_PROTOCOL)]
    if len(found) > 1:
        raise BadCredential("multiple base64.bearer.authorization tokens specified")
    if not others:
        raise BadCredential("missing additional subprotocol")
    from .jwt import NotAToken, decode

    try:
        token = decode(found[0].removeprefix(_PROTOCOL)).decode()
    except (NotAToken, UnicodeDecodeError) as error:
        raise BadCredential("invalid base64.bearer.authorization token encoding") from error
    request.headers["sec-websocket-protocol"] = ",".join(others)
    return token
