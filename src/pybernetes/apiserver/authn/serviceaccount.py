"""Tokens of service accounts: made for a TokenRequest, and recognised again.

A token names its account and, if it is bound, the pod, secret or node it lives and dies with, each with its uid. It is
good only while all of them are there (an object of the same name is another one), and for a minute after one has
begun to go, as upstream has it. Keys are read at the start and understood when the first token comes: loading the
cryptography takes 20 ms and 10 MB, which a server without tokens need not pay.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.times import Clock, parse_time
from pybernetes.store.watchers import Item

from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..user import CREDENTIAL_ID, User
from . import jwt, metrics
from .authenticator import BadCredential, TokenUser, meant_for

if TYPE_CHECKING:
    from pybernetes.jws import SigningKey, VerificationKey

log = logging.getLogger(__name__)

USER_PREFIX = "system:serviceaccount:"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"
WARN_ONLY_SECONDS = 3607  # what kubelets ask for by default; upstream's WarnOnlyBoundTokenExpirationSeconds
EXTENDED_SECONDS = 24 * 365 * 60 * 60  # what they get; upstream's ExpirationExtensionSeconds


class Reference(msgspec.Struct, omit_defaults=True):
    """An object that a token names."""

    name: str = ""
    uid: str = ""


class Bound(msgspec.Struct, omit_defaults=True):
    """The claim `kubernetes.io`."""

    namespace: str = ""
    serviceaccount: Reference | None = None
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None
    warnafter: float | None = None


class _Claims(jwt.Claims):
    kubernetes: Bound = msgspec.field(name="kubernetes.io", default_factory=Bound)


_claims = msgspec.json.Decoder(_Claims)


def user_name(namespace: str, name: str) -> str:
    """The user that an account is."""
    return f"{USER_PREFIX}{namespace}:{name}"


def account_user(namespace: str, name: str, uid: str, extra: dict[str, list[str]] | None = None) -> User:
    """An account as a user, with its groups."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(user_name(namespace, name), uid, groups, extra or {})


class Keys:
    """The keys that tokens of accounts may be signed with."""

    def __init__(self, files: Sequence[bytes]) -> None:
        self._files = files
        self._found: dict[str, VerificationKey] | None = None

    @property
    def by_name(self) -> dict[str, VerificationKey]:
        """Each key by its key id, in the order of the files. Raises ValueError for a file without any."""
        if self._found is None:
            from pybernetes import jws

            found = (key for pem in self._files for key in jws.load_public_keys(pem))
            self._found = {jws.key_id(key): key for key in found}
        return self._found

    def candidates(self, name: str) -> list[VerificationKey]:
        """The keys that a token could be signed with: the one its header names, or if it names none, any."""
        keys = self.by_name
        if not name:
            return list(keys.values())
        return [keys[name]] if name in keys else []

    def check(self, token: jwt.Signed) -> None:
        """Return if one of the keys signed the token. Raises BadCredential."""
        try:
            candidates = self.candidates(token.header.kid)
        except ValueError as error:
            log.error("the keys for service account tokens cannot be read: %s", error)
            raise BadCredential("no keys") from error
        if not candidates:
            raise BadCredential("invalid signature, no keys found")
        from pybernetes import jws

        if not any(jws.verifies(token.header.alg, token.text, token.signature, key) for key in candidates):
            raise BadCredential("invalid signature of a service account token")


class Issuer:
    """Signs tokens in the name of this cluster."""

    def __init__(self, url: str, pem: bytes) -> None:
        self.url = url
        self._pem = pem
        self._key: SigningKey | None = None

    def sign(self, claims: dict[str, Any]) -> str:
        """A token that says this. Raises ValueError if the key cannot sign."""
        from pybernetes import jws

        if self._key is None:
            self._key = jws.load_signing_key(self._pem)
        return jws.sign_token({**claims, "iss": self.url}, self._key)


def bound_claims(
    account: Any, audiences: Sequence[str], now: float, seconds: int, bound: dict[str, Any], warn_after: int, jti: str
) -> dict[str, Any]:
    """The claims of a token; `bound` are the objects it is bound to, by `pod`, `secret` and `node`."""
    meta = account.metadata
    begin = int(now)
    about: dict[str, Any] = {
        "namespace": meta.namespace,
        "serviceaccount": _reference(account),
        **{kind: _reference(obj) for kind, obj in bound.items()},
    }
    if warn_after:
        about["warnafter"] = begin + warn_after
    return {
        "sub": user_name(meta.namespace, meta.name),
        "aud": list(audiences),
        "iat": begin,
        "nbf": begin,
        "exp": begin + seconds,
        "jti": jti,
        "kubernetes.io": about,
    }


def _reference(obj: Any) -> dict[str, str]:
    meta = obj.metadata
    return {"name": meta.name, "uid": meta.uid} if meta.uid else {"name": meta.name}


class BoundTokens:
    """Recognises what `Issuer` has signed, here or on another server of the cluster."""

    def __init__(self, registry: Registry, issuers: Sequence[str], keys: Keys, audiences: Sequence[str]) -> None:
        self._issuers = frozenset(issuers)
        self._keys = keys
        self._audiences = tuple(audiences)
        self._clock: Clock = registry.clock
        self._objects = Objects(registry)

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        """The account as a user, with what the token is bound to as `extra`. Raises BadCredential."""
        try:
            signed = jwt.parse(token)
            if jwt.claims(signed.payload).iss not in self._issuers:
                return None
        except jwt.NotAToken:
            return None
        self._keys.check(signed)
        try:
            claims = _claims.decode(signed.payload)
        except msgspec.MsgspecError as error:
            raise BadCredential(f"service account token: {error}") from error
        common = meant_for(claims.audiences or self._audiences, audiences)
        now = self._clock.now()
        problem = jwt.check_dates(claims, now)
        if problem:
            raise BadCredential(f"service account {problem}")
        seen = await self._check_objects(claims.kubernetes, now)
        lifetime = math.inf if claims.exp is None else claims.exp + jwt.LEEWAY - now
        return TokenUser(
            _user(claims),
            common,
            annotations=_stale(claims, now),
            holds=seen.unchanged,
            lifetime=0.0 if seen.any_deleted else lifetime,
        )

    async def _check_objects(self, about: Bound, now: float) -> Seen:
        seen = Seen()
        account = about.serviceaccount or Reference()
        await self._check(seen, "serviceaccounts", about.namespace, account, now)
        if about.secret is not None:
            await self._check(seen, "secrets", about.namespace, about.secret, now)
        if about.pod is not None:
            await self._check(seen, "pods", about.namespace, about.pod, now)
        elif about.node is not None:  # a pod's node is only reported, not checked
            await self._check(seen, "nodes", "", about.node, now)
        return seen

    async def _check(self, seen: Seen, plural: str, namespace: str, reference: Reference, now: float) -> None:
        obj = await self._objects.find(seen, plural, namespace, reference.name)
        gone = obj is None
        if obj is not None:
            if obj.metadata.uid != reference.uid:
                raise BadCredential(_another(plural, obj.metadata.uid, reference.uid))
            if obj.metadata.deletion_timestamp:
                seen.any_deleted = True
                gone = parse_time(obj.metadata.deletion_timestamp) < now - jwt.LEEWAY
        if gone:
            log.debug("the %s %s/%s of a service account token is gone", plural, namespace, reference.name)
            raise BadCredential(_gone(plural, namespace, reference.name, found=obj is not None))


# Who asks with a TokenReview reads these, so they are upstream's words.
def _another(plural: str, uid: str, claimed: str) -> str:
    if plural == "serviceaccounts":
        return f"service account UID ({uid}) does not match claim ({claimed})"
    kind = plural.removesuffix("s")
    return f"{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})"


def _gone(plural: str, namespace: str, name: str, *, found: bool) -> str:
    if plural != "serviceaccounts":
        return "service account token has been invalidated"
    return f"service account {namespace}/{name} has been deleted" if found else f'serviceaccounts "{name}" not found'


def _stale(claims: _Claims, now: float) -> tuple[tuple[str, str], ...]:
    """The audit annotations for a token that its pod should have replaced by now."""
    after = claims.kubernetes.warnafter
    if not after:
        return ()
    if now <= after:
        metrics.VALID.add()
        return ()
    metrics.STALE.add()
    told = f"subject: {claims.sub}, seconds after warning threshold: {int(now) - int(after)}"
    return (("authentication.k8s.io/stale-token", told),)


class Seen:
    """The objects that an answer was made from, as they were."""

    def __init__(self) -> None:
        self.objects: list[tuple[ResourceStore, str, Item]] = []
        self.any_deleted = False

    def unchanged(self) -> bool:
        """Whether all of them are what they were: one look into a dict for each."""
        for store, key, item in self.objects:  # noqa: SIM110  a generator takes twice as long, on every request
            if store.partition.items.get(key) is not item:
                return False
        return True


class Objects:
    """The objects that tokens name."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def find(self, seen: Seen, plural: str, namespace: str, name: str) -> Any | None:
        """The object as of now, noted in `seen`; None if there is none."""
        found = self.peek(seen, plural, namespace, name)
        if found is None and name and await self._registry.store("", "v1", plural).find(namespace, name):
            found = self.peek(seen, plural, namespace, name)
        return found

    def peek(self, seen: Seen, plural: str, namespace: str, name: str) -> Any | None:
        """The object as the cache has it, noted in `seen`; for who has shown nothing yet that is worth asking for."""
        store = self._registry.store("", "v1", plural)
        item = store.peek(namespace, name) if name else None
        if item is None:
            return None
        seen.objects.append((store, item.key, item))
        return store.decode(item)


def _user(claims: _Claims) -> User:
    about = claims.kubernetes
    account = about.serviceaccount or Reference()
    extra: dict[str, list[str]] = {}
    if about.pod is not None and about.pod.name and about.pod.uid:
        extra[POD_NAME] = [about.pod.name]
        extra[POD_UID] = [about.pod.uid]
    if claims.jti:
        extra[CREDENTIAL_ID] = [f"JTI={claims.jti}"]
    if about.node is not None and about.node.name:
        extra[NODE_NAME] = [about.node.name]
        if about.node.uid:
            extra[NODE_UID] = [about.node.uid]
    return account_user(about.namespace, account.name, account.uid, extra)
