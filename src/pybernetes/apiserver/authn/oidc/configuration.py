"""`--authentication-config`: what stands in an AuthenticationConfiguration, and what the flags amount to."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from pybernetes.api.yaml import yaml_to_json

VERSIONS = tuple(f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
KIND = "AuthenticationConfiguration"
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")


class _Struct(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    pass


class Issuer(_Struct):
    url: str = ""
    discovery_url: str | None = msgspec.field(name="discoveryURL", default=None)
    certificate_authority: str = ""
    audiences: list[str] = []
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class ClaimValidationRule(_Struct):
    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class ClaimOrExpression(_Struct):
    claim: str = ""
    expression: str = ""


class PrefixedClaimOrExpression(_Struct):
    claim: str = ""
    prefix: str | None = None
    expression: str = ""


class ExtraMapping(_Struct):
    key: str = ""
    value_expression: str = ""


class ClaimMappings(_Struct):
    username: PrefixedClaimOrExpression = msgspec.field(default_factory=PrefixedClaimOrExpression)
    groups: PrefixedClaimOrExpression = msgspec.field(default_factory=PrefixedClaimOrExpression)
    uid: ClaimOrExpression = msgspec.field(default_factory=ClaimOrExpression)
    extra: list[ExtraMapping] = []


class UserValidationRule(_Struct):
    expression: str = ""
    message: str = ""


class JWTAuthenticator(_Struct):
    """One issuer, and how its claims become a user."""

    issuer: Issuer = msgspec.field(default_factory=Issuer)
    claim_validation_rules: list[ClaimValidationRule] = []
    claim_mappings: ClaimMappings = msgspec.field(default_factory=ClaimMappings)
    user_validation_rules: list[UserValidationRule] = []


class AnonymousCondition(_Struct):
    path: str = ""


class AnonymousConfig(_Struct):
    enabled: bool = False
    conditions: list[AnonymousCondition] = []


class Configuration(_Struct):
    """An AuthenticationConfiguration."""

    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    jwt: list[JWTAuthenticator] = []
    anonymous: AnonymousConfig | None = None


_decoder = msgspec.json.Decoder(Configuration)


def read(path: Path) -> Configuration:
    """What a file says. Raises ValueError or OSError."""
    content = path.read_bytes()
    if not content.strip():
        raise ValueError(f"{path}: empty config data")
    try:
        json, repeated = yaml_to_json(content)
        found = _decoder.decode(json)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    if repeated:
        raise ValueError(f"{path}: {repeated[0]}")
    if found.kind != KIND or found.api_version not in VERSIONS:
        raise ValueError(f'{path}: no kind "{found.kind}" is registered for version "{found.api_version}"')
    return found


def from_flags(options: argparse.Namespace) -> Configuration:
    """What the --oidc-* flags amount to. Raises ValueError or OSError."""
    url = options.oidc_issuer_url
    if not url:
        return Configuration()
    claim, prefix = options.oidc_username_claim, options.oidc_username_prefix
    if prefix == "-":
        prefix = ""
    elif not prefix and claim != "email":
        prefix = f"{url}#"  # so that two issuers do not mean the same user by accident
    groups = PrefixedClaimOrExpression()
    if options.oidc_groups_claim:
        groups = PrefixedClaimOrExpression(options.oidc_groups_claim, options.oidc_groups_prefix)
    authority = options.oidc_ca_file.read_text() if options.oidc_ca_file else ""
    return Configuration(
        jwt=[
            JWTAuthenticator(
                Issuer(url, certificate_authority=authority, audiences=[options.oidc_client_id]),
                [ClaimValidationRule(name, value) for name, value in options.oidc_required_claim.items()],
                ClaimMappings(PrefixedClaimOrExpression(claim, prefix), groups),
            )
        ]
    )
