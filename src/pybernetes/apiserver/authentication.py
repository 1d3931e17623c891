"""From flags to authenticators, in upstream's order: certificates, then tokens (local ones first), then anonymous."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pybernetes.net.client_certificates import Trust

from .authn.anonymous import PUBLIC, Anonymous
from .authn.authenticator import Authenticator, TokenAuthenticator
from .authn.serviceaccount import BoundTokens, Issuer, Keys
from .authn.tokens import Bearer, ForThisServer, Tokens
from .authn.union import Union
from .authn.x509 import ClientCertificate
from .registry.registry import Registry

if TYPE_CHECKING:
    from .authn.oidc.authenticator import OIDC
    from .authn.request_header import RequestHeader
    from .paths import Paths

_KEY = re.compile(rb"-----BEGIN ([A-Z0-9 ]*(?:PRIVATE|PUBLIC) KEY|CERTIFICATE)-----\s.+?-----END \1-----", re.DOTALL)


class Authorities(msgspec.Struct):
    """The CAs of client certificates, and of proxies that speak for clients."""

    client: Trust | None = None
    proxy: Trust | None = None

    @property
    def all(self) -> list[Trust]:
        """Those there are, that for clients first."""
        return [each for each in (self.client, self.proxy) if each is not None]


def authorities(options: argparse.Namespace) -> Authorities:
    """The authorities that the flags name. Raises OSError."""
    clients, proxies = options.client_ca_file, options.requestheader_client_ca_file
    return Authorities(Trust(clients) if clients else None, Trust(proxies) if proxies else None)


def authenticators(registry: Registry, options: argparse.Namespace, trusted: Authorities) -> Union:
    """All ways to prove who one is that the flags ask for. Raises ValueError or OSError."""
    found: list[Authenticator] = []
    if trusted.proxy is not None and options.requestheader_username_headers:
        found.append(_proxies(options, trusted.proxy))
    if trusted.client is not None:
        found.append(ClientCertificate(trusted.client, shared=trusted.proxy is not None))
    if options.basic_auth_file:
        from .authn.basic_file import BasicFile

        found.append(BasicFile(options.basic_auth_file))
    registry.authentication_info = lambda: _told(options, trusted)
    registry.tokens = tokens(registry, options)
    found.append(Bearer(registry.tokens))
    return Union(found, _anonymous(options))


def _told(options: argparse.Namespace, trusted: Authorities) -> dict[str, str]:
    """The contents of the ConfigMap extension-apiserver-authentication."""
    from .bootstrap.authentication import CLIENT_CA, LISTS, PROXY_CA

    for each in trusted.all:
        each.refresh()
    told = {CLIENT_CA: trusted.client.pem} if trusted.client is not None else {}
    if trusted.proxy is not None:
        told[PROXY_CA] = trusted.proxy.pem
        for key in LISTS:
            told[key] = msgspec.json.encode(list(getattr(options, key.replace("-", "_")))).decode()
    return told


def _proxies(options: argparse.Namespace, trust: Trust) -> RequestHeader:
    from .authn.request_header import Headers, RequestHeader

    headers = Headers(
        *(
            tuple(name.lower() for name in names)
            for names in (
                options.requestheader_username_headers,
                options.requestheader_uid_headers,
                options.requestheader_group_headers,
                options.requestheader_extra_headers_prefix,
            )
        )
    )
    return RequestHeader(trust, headers, options.requestheader_allowed_names)


def _anonymous(options: argparse.Namespace) -> Anonymous | None:
    if options.authentication_config:
        from .authn.oidc.configuration import read

        anonymous = read(options.authentication_config).anonymous
        if anonymous is not None:
            if options.anonymous_auth is not None:
                raise ValueError(
                    "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in "
                    "authentication configuration file"
                )
            if not anonymous.enabled:
                return None
            return Anonymous([each.path for each in anonymous.conditions] or None)
    if options.anonymous_auth is False:
        return None
    return Anonymous(PUBLIC if "AlwaysAllow" in (options.authorization_mode or ()) else None)


def tokens(registry: Registry, options: argparse.Namespace) -> Tokens:
    """All kinds of bearer tokens."""
    kinds: list[TokenAuthenticator] = []
    audiences = tuple(options.api_audiences)
    if options.token_auth_file:
        from .authn.token_file import TokenFile

        kinds.append(ForThisServer(TokenFile(options.token_auth_file), audiences))
    keys = service_account_keys(options)
    if keys is not None:
        from .authn.legacy_token import LegacyTokens

        kinds.append(LegacyTokens(registry, keys, audiences, lookup=options.service_account_lookup))
        kinds.append(BoundTokens(registry, options.service_account_issuer, keys, audiences))
    if options.enable_bootstrap_token_auth:
        from .authn.bootstrap_token import BootstrapTokens

        kinds.append(BootstrapTokens(registry, audiences))
    found = Tokens(kinds, audiences)
    if options.oidc_issuer_url or options.authentication_config:
        found.kinds.append(ForThisServer(_oidc(options, found.forget), audiences))
    if options.authentication_token_webhook_config_file:
        from .authn.webhook import TokenWebhook

        found.kinds.append(
            TokenWebhook(
                options.authentication_token_webhook_config_file,
                options.authentication_token_webhook_version,
                options.authentication_token_webhook_cache_ttl,
                audiences,
            )
        )
    return found


def _oidc(options: argparse.Namespace, changed: Callable[[], None]) -> OIDC:
    """The issuers that the flags or the configuration name; our own is none of them. Raises ValueError or OSError."""
    from .authn.oidc.authenticator import OIDC
    from .authn.oidc.configuration import ALGORITHMS, from_flags, read

    file = options.authentication_config
    return OIDC(
        read(file) if file else from_flags(options),
        algorithms=ALGORITHMS if file else options.oidc_signing_algs,
        disallowed=options.service_account_issuer,
        file=file,
        changed=changed,
    )


def issue_tokens(registry: Registry, options: argparse.Namespace) -> None:
    """Let `serviceaccounts/token` make tokens, if there is a key to sign with."""
    if options.service_account_signing_key_file is None:
        return
    from .subresources.token import TokenPolicy

    pem = _pem(options.service_account_signing_key_file)
    registry.token_policy = TokenPolicy(
        Issuer(options.service_account_issuer[0], pem),
        tuple(options.api_audiences),
        int(options.service_account_max_token_expiration),
        options.service_account_extend_token_expiration,
    )


def service_account_keys(options: argparse.Namespace) -> Keys | None:
    """The keys that tokens of service accounts are verified with; upstream falls back to the key for TLS."""
    files = options.service_account_key_file or [
        path for path in (options.service_account_signing_key_file or options.tls_private_key_file,) if path
    ]
    return Keys([_pem(path) for path in files]) if files else None


def publish_keys(paths: Paths, options: argparse.Namespace, address: Callable[[], str]) -> None:
    """Serve what others need to verify our tokens; `address` is this server's, known when it listens."""
    from .authn.openid import KEYS, Discovery, discoverable

    keys, issuer = service_account_keys(options), options.service_account_issuer[0]
    if keys is None or not discoverable(issuer):
        return

    def uri() -> str:
        return options.service_account_jwks_uri or f"https://{options.external_hostname or address()}{KEYS}"

    for path, handler in Discovery(issuer, uri, keys).paths.items():
        paths.add(path, handler, only_get=True)


def _pem(path: Path) -> bytes:
    """A file of keys. Raises ValueError for one that has none; the keys themselves are read when they are needed."""
    content = path.read_bytes()
    if not _KEY.search(content):
        raise ValueError(f"{path}: data does not contain any valid RSA or ECDSA keys")
    return content
