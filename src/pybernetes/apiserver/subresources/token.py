"""`serviceaccounts/token`: a TokenRequest is answered with a token, which is not stored."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.authentication.defaults import set_token_request_defaults
from pybernetes.api.authentication.v1 import TokenRequest, TokenRequestSpec, TokenRequestStatus
from pybernetes.api.errors import BadRequest, Conflict, InternalError, Invalid, PathNotFound
from pybernetes.api.field import FieldError, invalid
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.managedfields import record_update
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.randomness import new_uid
from pybernetes.api.times import rfc3339
from pybernetes.net.http import Request, Response

from ..admission.plugin import CREATE, Attributes
from ..authn.serviceaccount import EXTENDED_SECONDS, WARN_ONLY_SECONDS, Issuer, bound_claims
from ..pipeline.options import manager_of, write_options
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .body import answer_object, decode_body

API_VERSION = "authentication.k8s.io/v1"
GROUP, KIND = "authentication.k8s.io", "TokenRequest"
MINIMUM_SECONDS = 600
MAXIMUM_SECONDS = 1 << 32


class TokenPolicy(msgspec.Struct, frozen=True):
    """The issuer, audiences and lifetimes of the tokens this server makes."""

    issuer: Issuer
    audiences: tuple[str, ...]
    """The audiences of a token that was requested without any: this server."""
    maximum_seconds: int = 0
    """0 = as upstream's limit has it."""
    extend: bool = True
    """Whether the tokens that kubelets ask for by default live a year, and are only warned of after an hour."""


async def token(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 201 with a token of the account."""
    policy: TokenPolicy | None = registry.token_policy
    if policy is None:
        raise PathNotFound
    info = request.info
    options = write_options(info.query, "CreateOptions")
    asked = decode_body(request, TokenRequest, API_VERSION, options.field_validation)
    meta = asked.metadata = asked.metadata or ObjectMeta()
    set_token_request_defaults(asked)
    spec = asked.spec
    assert spec is not None
    assert spec.expiration_seconds is not None
    now = registry.clock.now()
    meta.managed_fields = record_update(
        asked,
        None,
        manager=manager_of(request, options),
        api_version=API_VERSION,
        now=rfc3339(now),
        subresource="token",
    )
    attributes = Attributes(
        CREATE,
        store.resource,
        "token",
        info.namespace,
        info.name,
        asked,
        None,
        request.user,
        options.dry_run,
        request.warnings,
        options,
        store.resource,
        (API_VERSION, KIND),
        annotations=None if request.audit is None else request.audit.annotations,
    )
    await registry.admission.admit(attributes)
    _check_place(meta, info.namespace, info.name)
    account = store.decode(await store.get(info.namespace, info.name))
    _complete(meta, account)
    if not spec.audiences:
        spec.audiences = list(policy.audiences)
    meta.creation_timestamp = rfc3339(now)
    asked.status = None
    errors = _validate(spec)
    if errors:
        raise Invalid(GROUP, KIND, "", errors)
    await registry.admission.validate(attributes)
    bound = await _bound_objects(registry, spec, info.namespace, info.name)
    if policy.maximum_seconds and spec.expiration_seconds > policy.maximum_seconds:
        request.warnings.append(
            f"requested expiration of {spec.expiration_seconds} seconds shortened to {policy.maximum_seconds} seconds"
        )
        spec.expiration_seconds = policy.maximum_seconds
    seconds, warn_after = _lifetime(policy, spec, bound)
    jti = new_uid()
    claims = bound_claims(account, spec.audiences, now, seconds, bound, warn_after, jti)
    try:
        signed = policy.issuer.sign(claims)
    except ValueError as error:
        raise InternalError(f"failed to generate token: {error}") from error
    if request.audit is not None:
        request.audit.annotations["authentication.kubernetes.io/issued-credential-id"] = f"JTI={jti}"
    asked.status = TokenRequestStatus(
        token=signed, expiration_timestamp=rfc3339(int(now) + (spec.expiration_seconds or 0))
    )
    return answer_object(request, asked, API_VERSION, 201)


def _check_place(meta: ObjectMeta, namespace: str, name: str) -> None:
    if meta.name and meta.name != name:
        detail = "must match the service account name if specified"
        raise Invalid(GROUP, KIND, name, [invalid("metadata.name", meta.name, detail)])
    if meta.namespace and meta.namespace != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _complete(meta: ObjectMeta, account: Any) -> None:
    found = account.metadata
    if meta.uid and meta.uid != found.uid:
        why = f"the UID in the token request ({meta.uid}) does not match the UID of the service account ({found.uid})"
        raise Conflict(GROUP, KIND, found.name, why)
    meta.name, meta.namespace, meta.uid = found.name, found.namespace, found.uid


def _validate(spec: TokenRequestSpec) -> list[FieldError]:
    seconds = spec.expiration_seconds or 0
    if seconds < MINIMUM_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > MAXIMUM_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


async def _bound_objects(registry: Registry, spec: TokenRequestSpec, namespace: str, account: str) -> dict[str, Any]:
    """The objects that the token is to be bound to, by the claim they go into. Raises what is wrong with them."""
    reference = spec.bound_object_ref
    if reference is None:
        return {}
    group, _, version = (reference.api_version or "").rpartition("/")
    kind, name = reference.kind or "", reference.name or ""
    if group or kind not in ("Pod", "Node", "Secret"):
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not name:
        raise BadRequest("Name parameter required.")
    store = registry.store("", "v1", f"{kind.lower()}s")
    obj = store.decode(await store.get("" if kind == "Node" else namespace, name))
    bound = {kind.lower(): obj}
    if kind == "Pod":
        if (obj.spec.service_account_name or "") != account:
            running = "to pod running with different serviceaccount name."
            raise BadRequest(f"cannot bind token for serviceaccount {quote(account)} {running}")
        if obj.spec.node_name:
            bound["node"] = await _node(registry, obj.spec.node_name)
    if reference.uid and obj.metadata.uid != reference.uid:
        why = (
            f"the UID in the bound object reference ({reference.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise Conflict("", kind, name, why)
    return bound


async def _node(registry: Registry, name: str) -> Any:
    """The node of a pod; one that does not exist (yet) is given by its name alone."""
    from pybernetes.api.core.v1 import Node

    nodes = registry.store("", "v1", "nodes")
    item = nodes.peek("", name) or await nodes.find("", name)
    return nodes.decode(item) if item is not None else Node(metadata=ObjectMeta(name=name))


def _lifetime(policy: TokenPolicy, spec: TokenRequestSpec, bound: dict[str, Any]) -> tuple[int, int]:
    """For how long the token is good, and after how long its use is worth a warning (0 = never)."""
    seconds = spec.expiration_seconds or 0
    for_this_server = set(spec.audiences or ()) <= set(policy.audiences)
    if policy.extend and "pod" in bound and seconds == WARN_ONLY_SECONDS and for_this_server:
        return EXTENDED_SECONDS, seconds  # whatever the maximum is; upstream's, too
    return seconds, 0
