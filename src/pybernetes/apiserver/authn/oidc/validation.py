"""Validates an AuthenticationConfiguration, with upstream's wording."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from pybernetes.api.cel.ast import Call, CompileError, Ident, Literal, Node, Select
from pybernetes.api.cel.environment import Program
from pybernetes.api.cel.libraries.urls import parse_url
from pybernetes.api.cel.literals import walk
from pybernetes.api.cel.types import BOOL
from pybernetes.api.field import FieldError, Path, duplicate, invalid, required, too_many
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.names import is_dns1123_subdomain, is_http_path

from .configuration import (
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimValidationRule,
    Issuer,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
    UserValidationRule,
)
from .expressions import claims_environment, user_environment

_BOTH = "claim and expression can't both be set"
_MANY = 64  # issuers; upstream's


def validate(configuration: AuthenticationConfiguration, disallowed: Collection[str]) -> list[FieldError]:
    """Everything that is wrong; `disallowed` are issuers that are known otherwise: our own."""
    root = Path("jwt")
    errors: list[FieldError] = []
    seen: dict[str, set[str]] = {"url": set(), "discoveryURL": set()}
    if len(configuration.jwt) > _MANY:
        return [too_many(root, len(configuration.jwt), _MANY)]
    for number, each in enumerate(configuration.jwt):
        path = root.index(number)
        errors += validate_jwt(each, path, disallowed)
        for name, url in (("url", each.issuer.url), ("discoveryURL", each.issuer.discovery_url or "")):
            if url in seen[name] and url:
                errors.append(duplicate(path.child("issuer").child(name), url))
            seen[name].add(url)
    anonymous = configuration.anonymous
    if anonymous is not None and not anonymous.enabled and anonymous.conditions:
        detail = "enabled should be set to true when conditions are defined"
        conditions = [{"Path": each.path} for each in anonymous.conditions]  # as Go prints them
        errors.append(invalid("anonymous.conditions", conditions, detail))
    return errors


def validate_jwt(jwt: JWTAuthenticator, path: Path, disallowed: Collection[str]) -> list[FieldError]:
    """Validation errors of one issuer's part."""
    checker = _Checker()
    return [
        *_issuer(jwt.issuer, path.child("issuer"), disallowed),
        *checker.rules(jwt.claim_validation_rules, path.child("claimValidationRules")),
        *checker.mappings(jwt.claim_mappings, path.child("claimMappings")),
        *checker.user_rules(jwt.user_validation_rules, path.child("userValidationRules")),
    ]


def _issuer(issuer: Issuer, path: Path, disallowed: Collection[str]) -> list[FieldError]:
    errors = []
    if not issuer.url:
        errors.append(required(path.child("url")))
    else:
        errors += _url(issuer.url, path.child("url"), disallowed)
    if issuer.discovery_url:
        where = path.child("discoveryURL")
        if issuer.url.rstrip("/") == issuer.discovery_url.rstrip("/"):
            errors.append(invalid(where, issuer.discovery_url, "discoveryURL must be different from URL"))
        errors += _url(issuer.discovery_url, where, ())
    errors += _audiences(issuer, path)
    if issuer.certificate_authority:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=issuer.certificate_authority)
        except (ssl.SSLError, ValueError):
            detail = "data does not contain any valid RSA or ECDSA certificates"
            errors.append(invalid(path.child("certificateAuthority"), "<omitted>", detail))
    if issuer.egress_selector_type:
        detail = "egress selector must be either controlplane or cluster"
        if issuer.egress_selector_type in ("controlplane", "cluster"):
            detail = "egress selectors are not supported"
        errors.append(invalid(path.child("egressSelectorType"), issuer.egress_selector_type, detail))
    return errors


def _url(url: str, path: Path, disallowed: Collection[str]) -> list[FieldError]:
    errors = []
    if url in disallowed:
        detail = f"URL must not overlap with disallowed issuers: [{' '.join(sorted(disallowed))}]"
        errors.append(invalid(path, url, detail))
    try:
        parse_url(url)
        parts = urlsplit(url)
    except ValueError as error:
        return [*errors, invalid(path, url, f"parse {quote(url)}: {error}")]
    if parts.scheme != "https":
        errors.append(invalid(path, url, "URL scheme must be https"))
    if "@" in parts.netloc:
        errors.append(invalid(path, url, "URL must not contain a username or password"))
    if parts.query:
        errors.append(invalid(path, url, "URL must not contain a query"))
    if parts.fragment:
        errors.append(invalid(path, url, "URL must not contain a fragment"))
    return errors


def _audiences(issuer: Issuer, path: Path) -> list[FieldError]:
    where, policy = path.child("audiences"), issuer.audience_match_policy
    if not issuer.audiences:
        return [required(where, f"at least one {where} is required")]
    errors = []
    for number, audience in enumerate(issuer.audiences):
        if not audience:
            errors.append(required(where.index(number)))
        if audience in issuer.audiences[:number]:
            errors.append(duplicate(where.index(number), audience))
    several = len(issuer.audiences) > 1
    if policy != "MatchAny" and (several or policy):
        detail = f"audienceMatchPolicy must be {'MatchAny for multiple audiences' if several else ''}"
        detail += "" if several else "empty or MatchAny for single audience"
        errors.append(invalid(path.child("audienceMatchPolicy"), policy, detail))
    return errors


class _Checker:
    """The expressions of one issuer; notes whether they look at the claims about mail addresses."""

    def __init__(self) -> None:
        self._email = self._verified = False

    def rules(self, rules: Sequence[ClaimValidationRule], path: Path) -> list[FieldError]:
        errors: list[FieldError] = []
        claims: set[str] = set()
        expressions: set[str] = set()
        for number, rule in enumerate(rules):
            where = path.index(number)
            if rule.claim and rule.expression:
                errors.append(invalid(where, rule.claim, _BOTH))
            elif not rule.claim and not rule.expression:
                errors.append(required(where, "claim or expression is required"))
            elif rule.claim:
                if rule.message:
                    detail = "may not be specified when claim is set"
                    errors.append(invalid(where.child("message"), rule.message, detail))
                if rule.claim in claims:
                    errors.append(duplicate(where.child("claim"), rule.claim))
                claims.add(rule.claim)
            else:
                if rule.required_value:
                    detail = "may not be specified when expression is set"
                    errors.append(invalid(where.child("requiredValue"), rule.required_value, detail))
                if rule.expression in expressions:
                    errors.append(duplicate(where.child("expression"), rule.expression))
                    continue
                expressions.add(rule.expression)
                errors += self._claims(rule.expression, where.child("expression"), boolean=True)
        return errors

    def mappings(self, mappings: ClaimMappings, path: Path) -> list[FieldError]:
        username = mappings.username
        errors = self._prefixed(username, path.child("username"), needed=True)
        errors += self._prefixed(mappings.groups, path.child("groups"), needed=False)
        if mappings.uid.claim and mappings.uid.expression:
            errors.append(invalid(path.child("uid"), "", _BOTH))
        elif mappings.uid.expression:
            errors += self._claims(mappings.uid.expression, path.child("uid").child("expression"))
        seen: set[str] = set()
        for number, extra in enumerate(mappings.extra):
            where = path.child("extra").index(number)
            errors += _extra_key(extra.key, where.child("key"))
            if extra.key in seen:
                errors.append(duplicate(where.child("key"), extra.key))
                continue
            seen.add(extra.key)
            if not extra.value_expression:
                errors.append(required(where.child("valueExpression")))
                continue
            errors += self._claims(extra.value_expression, where.child("valueExpression"))
        if self._email and not self._verified:
            detail = (
                "claims.email_verified must be used in claimMappings.username.expression or "
                "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is "
                "used in claimMappings.username.expression"
            )
            errors.append(invalid(path.child("username").child("expression"), username.expression, detail))
        return errors

    def user_rules(self, rules: Sequence[UserValidationRule], path: Path) -> list[FieldError]:
        errors: list[FieldError] = []
        for number, rule in enumerate(rules):
            where = path.index(number).child("expression")
            if not rule.expression:
                errors.append(required(where))
            elif any(rule.expression == each.expression for each in rules[:number]):
                errors.append(duplicate(where, rule.expression))
            else:
                program = _compiled(user_environment().compile, rule.expression, where, errors)
                if program is not None and program.result_type != BOOL:
                    errors.append(invalid(where, rule.expression, "must evaluate to bool"))
        return errors

    def _prefixed(self, mapping: PrefixedClaimOrExpression, path: Path, *, needed: bool) -> list[FieldError]:
        if mapping.claim and mapping.expression:
            return [invalid(path, "", _BOTH)]
        if mapping.expression:
            errors = []
            if mapping.prefix is not None:
                errors.append(
                    invalid(path.child("prefix"), mapping.prefix, "may not be specified when expression is set")
                )
            return errors + self._claims(mapping.expression, path.child("expression"), username=needed)
        if mapping.claim:
            if mapping.prefix is None:
                detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
                return [required(path.child("prefix"), detail)]
            return []
        return [required(path, "claim or expression is required")] if needed else []

    def _claims(
        self, expression: str, path: Path, *, boolean: bool = False, username: bool = False
    ) -> list[FieldError]:
        errors: list[FieldError] = []
        program = _compiled(claims_environment().compile, expression, path, errors)
        if program is None:
            return errors
        if boolean and program.result_type != BOOL:
            return [invalid(path, expression, "must evaluate to bool")]
        self._email = self._email or (username and _looks_at(program.root, "email"))
        self._verified = self._verified or _looks_at(program.root, "email_verified")
        return errors


def _compiled(compile_, expression: str, path: Path, errors: list[FieldError]) -> Program | None:  # type: ignore[no-untyped-def]
    try:
        program: Program = compile_(expression)
    except CompileError as error:
        errors.append(invalid(path, expression, f"compilation failed: {error}"))
        return None
    return program


def _looks_at(root: Node, claim: str) -> bool:
    def is_claims(node: Node) -> bool:
        return isinstance(node, Ident) and node.name == "claims"

    for node in walk(root):
        if isinstance(node, Select) and is_claims(node.operand) and node.field == claim:
            return True
        if isinstance(node, Call) and node.name == "_?._" and is_claims(node.args[0]):
            key = node.args[1]
            if isinstance(key, Literal) and key.value == claim:
                return True
    return False


def _extra_key(key: str, path: Path) -> list[FieldError]:
    if not key:
        return [required(path)]
    domain, _, rest = key.partition("/")
    if not domain or not rest:
        return [invalid(path, key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, domain, problem) for problem in is_dns1123_subdomain(domain)]
    errors += [invalid(path, rest, problem) for problem in is_http_path(rest)]
    if key != key.lower():
        errors.append(invalid(path, key, "must be lowercase"))
    if any(domain == each or domain.endswith(f".{each}") for each in ("kubernetes.io", "k8s.io")):
        detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
        errors.append(invalid(path, key, detail))
    return errors
