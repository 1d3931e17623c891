"""The flags about who is who, with upstream's names and defaults, and what of them does not go together."""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import urlsplit

from pybernetes.api.pem import blocks
from pybernetes.api.times import parse_duration

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
_MAXIMUM = (3600.0, float(1 << 32))  # seconds; what --service-account-max-token-expiration may be


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add them to a parser."""
    add = parser.add_argument_group("authentication").add_argument
    add("--anonymous-auth", type=_flag, nargs="?", const=True, help="let in who presents no credential; true")
    add("--client-ca-file", type=_file, help="who this CA has signed is the certificate's common name")
    add("--requestheader-client-ca-file", type=_file, help="who this CA has signed may say in headers who users are")
    add("--requestheader-allowed-names", type=_list, default=[], help="of these, those with one of these names")
    add("--requestheader-username-headers", type=_headers, default=(), help="X-Remote-User is common")
    add("--requestheader-uid-headers", type=_headers, default=(), help="X-Remote-Uid is suggested")
    add("--requestheader-group-headers", type=_headers, default=(), help="X-Remote-Group is suggested")
    add("--requestheader-extra-headers-prefix", type=_headers, default=(), help="X-Remote-Extra- is suggested")
    add("--basic-auth-file", type=_file, help='passwords: password,user,uid,"group1,group2"')
    add("--enable-bootstrap-token-auth", type=_flag, nargs="?", const=True, default=False, help="for nodes that join")
    add("--token-auth-file", type=_file, help='bearer tokens: token,user,uid,"group1,group2"')
    add("--service-account-issuer", action="append", help="who tokens say has made them; the first signs, all count")
    add("--service-account-key-file", type=_file, action="append", help="keys that tokens may be signed with")
    add("--service-account-signing-key-file", type=_file, help="the private key that tokens are signed with")
    add("--service-account-lookup", type=_flag, nargs="?", const=True, default=True, help="check Secrets of tokens")
    add("--service-account-max-token-expiration", type=_seconds, default=0.0, help="longest life of a token")
    add(
        "--service-account-extend-token-expiration",
        type=_flag,
        nargs="?",
        const=True,
        default=True,
        help="let tokens that kubelets ask for by default live a year",
    )
    add("--service-account-jwks-uri", default="", help="where the keys are published, if not at this server")
    add("--api-audiences", type=_list, default=[], help="whom tokens for this server are meant for; the issuers")
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
    options.service_account_key_file = options.service_account_key_file or []
    options.api_audiences = options.api_audiences or list(issuers)


def _check_proxies(options: argparse.Namespace) -> None:
    """If clients and proxies have an authority in common, any client could speak for anybody. Raises ValueError."""
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


def _blocks(path: Path) -> list[bytes]:
    return [each.data for each in blocks(path.read_bytes())]


def _headers(text: str) -> tuple[str, ...]:
    names = tuple(part.strip().lower() for part in text.split(","))
    if "" in names:
        raise argparse.ArgumentTypeError("empty value in a list of headers")
    return names


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"no such file: {text}")
    return path


def _flag(text: str) -> bool:
    found = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(text.lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"not a boolean: {text}")
    return found


def _seconds(text: str) -> float:
    try:
        return parse_duration(text) / 1e9
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
