"""`--authentication-config`: what stands in an AuthenticationConfiguration, and what the flags amount to."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from pybernetes.api import configfile

_SCHEME = configfile.Scheme(
    {
        (f"apiserver.config.k8s.io/{version}", "AuthenticationConfiguration")
        for version in ("v1", "v1beta1", "v1alpha1")
    },
    "pkg/kubeapiserver/options/authentication.go:879",
)
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")


class Issuer(configfile.Section):
    url: str = ""
    discovery_url: str | None = msgspec.field(name="discoveryURL", default=None)
    certificate_authority: str = ""
    audiences: list[str] = []
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class ClaimValidationRule(configfile.Section):
    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class ClaimOrExpression(configfile.Section):
    claim: str = ""
    expression: str = ""


class PrefixedClaimOrExpression(configfile.Section):
    claim: str = ""
    prefix: str | None = None
    expression: str = ""


class ExtraMapping(configfile.Section):
    key: str = ""
    value_expression: str = ""


class ClaimMappings(configfile.Section):
    username: PrefixedClaimOrExpression = msgspec.field(default_factory=PrefixedClaimOrExpression)
    groups: PrefixedClaimOrExpression = msgspec.field(default_factory=PrefixedClaimOrExpression)
    uid: ClaimOrExpression = msgspec.field(default_factory=ClaimOrExpression)
    extra: list[ExtraMapping] = []


class UserValidationRule(configfile.Section):
    expression: str = ""
    message: str = ""


class JWTAuthenticator(configfile.Section):
    """One issuer, and how its claims become a user."""

    issuer: Issuer = msgspec.field(default_factory=Issuer)
    claim_validation_rules: list[ClaimValidationRule] = []
    claim_mappings: ClaimMappings = msgspec.field(default_factory=ClaimMappings)
    user_validation_rules: list[UserValidationRule] = []


class AnonymousCondition(configfile.Section):
    path: str = ""


class AnonymousConfig(configfile.Section):
    enabled: bool = False
    conditions: list[AnonymousCondition] = []


class AuthenticationConfiguration(configfile.Section):
    """An AuthenticationConfiguration."""

    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    jwt: list[JWTAuthenticator] = []
    anonymous: AnonymousConfig | None = None


def read(path: Path) -> AuthenticationConfiguration:
    """Read a file. Raises ValueError or OSError."""
    content = path.read_bytes()
    try:
        if not content:
            raise configfile.ConfigError("empty config data")
        return configfile.load(content, AuthenticationConfiguration, _SCHEME)
    except configfile.ConfigError as error:
        raise ValueError(f'failed to load authentication configuration from file "{path}": {error}') from None


def from_flags(options: argparse.Namespace) -> AuthenticationConfiguration:
    """The configuration equivalent to the --oidc-* flags. Raises ValueError or OSError."""
    url = options.oidc_issuer_url
    if not url:
        return AuthenticationConfiguration()
    claim, prefix = options.oidc_username_claim, options.oidc_username_prefix
    if prefix == "-":
        prefix = ""
    elif not prefix and claim != "email":
        prefix = f"{url}#"  # so that two issuers do not mean the same user by accident
    groups = PrefixedClaimOrExpression()
    if options.oidc_groups_claim:
        groups = PrefixedClaimOrExpression(options.oidc_groups_claim, options.oidc_groups_prefix)
    authority = options.oidc_ca_file.read_text() if options.oidc_ca_file else ""
    return AuthenticationConfiguration(
        jwt=[
            JWTAuthenticator(
                Issuer(url, certificate_authority=authority, audiences=[options.oidc_client_id]),
                [ClaimValidationRule(name, value) for name, value in options.oidc_required_claim.items()],
                ClaimMappings(PrefixedClaimOrExpression(claim, prefix), groups),
            )
        ]
    )
