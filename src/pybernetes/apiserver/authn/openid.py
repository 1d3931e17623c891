"""The documents with which others verify service account tokens: `/.well-known/openid-configuration`,
`/openid/v1/jwks`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import msgspec

from pybernetes.net.http import Request, Response

from .serviceaccount import Keys

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
_HEADERS = [("Cache-Control", "public, max-age=3600")]  # upstream's; a new key is to be published this long before use


class Discovery:
    """The two documents, made when first asked for."""

    def __init__(self, issuer: str, jwks_uri: Callable[[], str], keys: Keys) -> None:
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._keys = keys
        self.paths: dict[str, Callable[[Request], Awaitable[Response]]] = {
            CONFIGURATION: self._configuration,
            KEYS: self._key_set,
        }

    async def _configuration(self, request: Request) -> Response:
        from pybernetes import jws

        document = {
            "issuer": self._issuer,
            "jwks_uri": self._jwks_uri(),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted(
                {jws.algorithm_of(key) for key in self._keys.by_name.values()}
            ),
        }
        return Response(msgspec.json.encode(document), headers=_HEADERS)

    async def _key_set(self, request: Request) -> Response:
        from pybernetes import jws

        document = {"keys": [jws.to_jwk(key) for key in self._keys.by_name.values()]}
        return Response(msgspec.json.encode(document), content_type="application/jwk-set+json", headers=_HEADERS)


def discoverable(issuer: str) -> bool:
    """Whether the issuer can be asked for its configuration: upstream wants https without query or fragment."""
    parts = urlsplit(issuer)
    return parts.scheme == "https" and not parts.query and not parts.fragment
