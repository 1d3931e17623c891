"""From the claims of a token to a user: by the names of claims, or by expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pybernetes.api.cel.environment import Program
from pybernetes.api.cel.values import CostLimitExceeded, EvaluationError

from ...user import CREDENTIAL_ID, User
from ..authenticator import BadCredential
from .configuration import JWTAuthenticator
from .expressions import claims_environment, claims_value, user_environment, user_value


class Mapping:
    """Maps claims to a user by one part of the configuration. Its expressions are valid."""

    def __init__(self, configuration: JWTAuthenticator) -> None:
        mappings = configuration.claim_mappings
        self._mappings = mappings
        self._username = _compiled(mappings.username.expression)
        self._groups = _compiled(mappings.groups.expression)
        self._uid = _compiled(mappings.uid.expression)
        self._extra = [(each.key, claims_environment().compile(each.value_expression)) for each in mappings.extra]
        rules = configuration.claim_validation_rules
        self._required = {rule.claim: rule.required_value for rule in rules if rule.claim}
        self._rules = [
            (claims_environment().compile(rule.expression), rule.message) for rule in rules if rule.expression
        ]
        self._user_rules = [
            (user_environment().compile(rule.expression), rule.message) for rule in configuration.user_validation_rules
        ]

    def user(self, claims: dict[str, Any]) -> User:
        """The user of the claims. Raises BadCredential."""
        seen = self._seen(claims)
        user = User(
            self._name_of(claims, seen),
            self._uid_of(claims, seen),
            tuple(self._groups_of(claims, seen)),
            self._extra_of(claims, seen),
        )
        for claim, value in self._required.items():
            found = _text(claims, claim, f"required claim {claim}")
            if found != value:
                raise BadCredential(f"oidc: required claim {claim} value does not match. Got = {found}, want = {value}")
        _check(self._rules, seen, "claim validation expression")
        if self._user_rules:
            _check(self._user_rules, {"user": user_value(user)}, "user info validation rule")
        return user

    def _seen(self, claims: dict[str, Any]) -> dict[str, Any]:
        """The claims as expressions see them, if there are any. Raises BadCredential."""
        if not (self._username or self._groups or self._uid or self._extra or self._rules):
            return {}
        try:
            return {"claims": claims_value(claims)}
        except RecursionError:
            raise BadCredential("oidc: the claims are nested too deep") from None

    def _name_of(self, claims: dict[str, Any], seen: dict[str, Any]) -> str:
        if self._username is not None:
            name = _evaluate(self._username, seen, "username claim expression")
            if not isinstance(name, str):
                raise BadCredential("oidc: username claim expression must return a string")
            if not name:
                raise BadCredential("oidc: empty username via CEL expression is not allowed")
            return name
        mapping = self._mappings.username
        name = _text(claims, mapping.claim, f"username claims {mapping.claim!r}")
        if mapping.claim == "email" and "email_verified" in claims and claims["email_verified"] is not True:
            raise BadCredential("oidc: email not verified")
        return f"{mapping.prefix or ''}{name}"

    def _groups_of(self, claims: dict[str, Any], seen: dict[str, Any]) -> list[str]:
        mapping = self._mappings.groups
        if mapping.claim and mapping.claim in claims:
            value = claims[mapping.claim]
            groups = [value] if isinstance(value, str) else value
            if groups is None:
                return []
            if not isinstance(groups, list) or not all(each is None or isinstance(each, str) for each in groups):
                raise BadCredential(f"oidc: parse groups claim {mapping.claim!r}: not a string or an array of strings")
            return [f"{mapping.prefix or ''}{group or ''}" for group in groups]
        if self._groups is None:
            return []
        return _texts(_evaluate(self._groups, seen, "group claim expression"), "group claim expression")

    def _uid_of(self, claims: dict[str, Any], seen: dict[str, Any]) -> str:
        claim = self._mappings.uid.claim
        if claim:
            return _text(claims, claim, f"uid claim {claim!r}")
        if self._uid is None:
            return ""
        uid = _evaluate(self._uid, seen, "uid claim expression")
        if not isinstance(uid, str):
            raise BadCredential("oidc: uid claim expression must return a string")
        return uid

    def _extra_of(self, claims: dict[str, Any], seen: dict[str, Any]) -> dict[str, list[str]]:
        extra: dict[str, list[str]] = {}
        if isinstance(claims.get("jti"), str) and claims["jti"]:
            extra[CREDENTIAL_ID] = [f"JTI={claims['jti']}"]
        for key, program in self._extra:
            values = _texts(_evaluate(program, seen, "extra claim expression"), "extra claim expression")
            if values:
                extra[key] = values
        return extra


def _compiled(expression: str) -> Program | None:
    return claims_environment().compile(expression) if expression else None


def _evaluate(program: Program, seen: dict[str, Any], what: str) -> Any:
    try:
        return program.evaluate(seen)[0]
    except (EvaluationError, CostLimitExceeded) as error:
        raise BadCredential(f"oidc: error evaluating {what}: {error}") from error


def _check(rules: Sequence[tuple[Program, str]], seen: dict[str, Any], what: str) -> None:
    for program, message in rules:
        if _evaluate(program, seen, what) is not True:
            raise BadCredential(f"oidc: {what} '{program.source}' failed: {message}")


def _text(claims: dict[str, Any], name: str, what: str) -> str:
    """A claim that is a text; null is an empty one, as in Go. Raises BadCredential."""
    if name not in claims:
        raise BadCredential(f"oidc: parse {what}: claim not present")
    value = claims[name]
    if value is not None and not isinstance(value, str):
        raise BadCredential(f"oidc: parse {what}: not a string")
    return value or ""


def _texts(value: Any, what: str) -> list[str]:
    """A string or a list of them; what is empty counts as absent. Raises BadCredential."""
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise BadCredential(f"oidc: error evaluating {what}: expression must return a string or a list of strings")
    return [each for each in values if each]
