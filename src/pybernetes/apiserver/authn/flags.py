"""The flags about who is who, with upstream's names and defaults, and what of them does not go together."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pybernetes.flags import boolean, file, seconds, words

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
_OIDC: dict[str, Any] = {
    "issuer_url": "",
    "client_id": "",
    "ca_file": None,
    "username_claim": "sub",
    "username_prefix": "",
    "groups_claim": "",
    "groups_prefix": "",
    "signing_algs": ["RS256"],
    "required_claim": (),
}
"""The defaults of the --oidc-* flags; a flag that is given counts as given, whatever its value."""

_MAXIMUM = (3600.0, float(1 << 32))  # seconds; what --service-account-max-token-expiration may be


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add them to a parser."""
    add = parser.add_argument_group("authentication").add_argument
    add("--anonymous-auth", type=boolean, nargs="?", const=True, help="let in who presents no credential; true")
    add("--client-ca-file", type=file, help="who this CA has signed is the certificate's common name")
    add("--requestheader-client-ca-file", type=file, help="who this CA has signed may say in headers who users are")
    add("--requestheader-allowed-names", type=words, default=[], help="of these, those with one of these names")
    add("--requestheader-username-headers", type=_headers, default=(), help="X-Remote-User is common")
    add("--requestheader-uid-headers", type=_headers, default=(), help="X-Remote-Uid is suggested")
    add("--requestheader-group-headers", type=_headers, default=(), help="X-Remote-Group is suggested")
    add("--requestheader-extra-headers-prefix", type=_headers, default=(), help="X-Remote-Extra- is suggested")
    add("--basic-auth-file", type=file, help='passwords: password,user,uid,"group1,group2"')
    add("--enable-bootstrap-token-auth", type=boolean, nargs="?", const=True, default=False, help="for nodes that join")
    add("--token-auth-file", type=file, help='bearer tokens: token,user,uid,"group1,group2"')
    add("--service-account-issuer", action="append", help="who tokens say has made them; the first signs, all count")
    add("--service-account-key-file", type=file, action="append", help="keys that tokens may be signed with")
    add("--service-account-signing-key-file", type=file, help="the private key that tokens are signed with")
    add("--service-account-lookup", type=boolean, nargs="?", const=True, default=True, help="check Secrets of tokens")
    add("--service-account-max-token-expiration", type=seconds, default=0.0, help="longest life of a token")
    add(
        "--service-account-extend-token-expiration",
        type=boolean,
        nargs="?",
        const=True,
        default=True,
        help="let tokens that kubelets ask for by default live a year",
    )
    add("--service-account-jwks-uri", default="", help="where the keys are published, if not at this server")
    add("--authentication-config", type=file, help="an AuthenticationConfiguration: OpenID Connect, anonymous")
    add("--oidc-issuer-url", help="the issuer of ID tokens")
    add("--oidc-client-id", help="whom ID tokens are meant for")
    add("--oidc-ca-file", type=file, help="who may sign the issuer's certificate; the machine's authorities")
    add("--oidc-username-claim", help="the claim that is the user's name; sub")
    add("--oidc-username-prefix", help="put before it; - = nothing; the issuer, unless it is an email")
    add("--oidc-groups-claim", help="the claim that is the user's groups")
    add("--oidc-groups-prefix", help="put before each of them")
    add("--oidc-signing-algs", type=_algorithms, help="with which issuers may sign; RS256")
    add("--oidc-required-claim", type=_pair, action="append", help="claim=value, to be in every token")
    add("--authentication-token-webhook-config-file", type=file, help="a kubeconfig: who to ask about tokens")
    add("--authentication-token-webhook-version", choices=("v1", "v1beta1"), default="v1beta1", help="of TokenReview")
    add("--authentication-token-webhook-cache-ttl", type=seconds, default=120.0, help="how long answers are kept")
    add("--api-audiences", type=words, default=[], help="whom tokens for this server are meant for; the issuers")
    add("--external-hostname", default="", help="the name of this server for those outside")


def check(options: argparse.Namespace) -> None:
    """Fill in what follows from other flags. Raises ValueError."""
    issuers = options.service_account_issuer = options.service_account_issuer or [DEFAULT_ISSUER]
    for number, issuer in enumerate(issuers):
        if not issuer:
            raise ValueError("--service-account-issuer should not be an empty string")
        if issuer in issuers[:number]:
            raise ValueError(f'--service-account-issuer "{issuer}" is already specified')
    maximum = options.service_account_max_token_expiration
    if maximum and not _MAXIMUM[0] <= maximum <= _MAXIMUM[1]:
        raise ValueError("the --service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
    uri = options.service_account_jwks_uri
    if uri and urlsplit(uri).scheme != "https":
        raise ValueError(f"--service-account-jwks-uri requires https scheme, parsed as: {uri}")
    _check_proxies(options)
    _check_oidc(options)
    options.service_account_key_file = options.service_account_key_file or []
    options.api_audiences = options.api_audiences or list(issuers)


def _check_proxies(options: argparse.Namespace) -> None:
    """If clients and proxies have an authority in common, any client could claim to be any user. Raises ValueError."""
    clients, proxies = options.client_ca_file, options.requestheader_client_ca_file
    if clients and proxies and not options.requestheader_allowed_names:
        common = set(_blocks(clients)) & set(_blocks(proxies))
        if common:
            raise ValueError(
                "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
                "--requestheader-allowed-names must be specified to ensure regular client certificates cannot set "
                "authenticating proxy headers for arbitrary users"
            )
    if options.requestheader_username_headers and not proxies:
        raise ValueError("--requestheader-username-headers needs --requestheader-client-ca-file")


def _check_oidc(options: argparse.Namespace) -> None:
    used = any(getattr(options, f"oidc_{name}") is not None for name in _OIDC)
    if options.authentication_config and used:
        raise ValueError("authentication-config file and oidc-* flags are mutually exclusive")
    if used and not (options.oidc_issuer_url and options.oidc_client_id):
        raise ValueError("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
    for name, default in _OIDC.items():
        if getattr(options, f"oidc_{name}") is None:
            setattr(options, f"oidc_{name}", default)
    options.oidc_required_claim = dict(options.oidc_required_claim)


def _algorithms(text: str) -> list[str]:
    from .oidc.configuration import ALGORITHMS

    names = words(text)
    for name in names:
        if name not in ALGORITHMS:
            raise argparse.ArgumentTypeError(f'oidc: unsupported signing alg: "{name}"')
    return names


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise argparse.ArgumentTypeError(f"malformed pair, expect string=string: {text}")
    return name.strip(), value.strip()


def _blocks(path: Path) -> list[bytes]:
    from pybernetes.api.pem import blocks

    return [each.data for each in blocks(path.read_bytes())]


def _headers(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if "" in names:
        raise argparse.ArgumentTypeError("empty value in a list of headers")
    return names
