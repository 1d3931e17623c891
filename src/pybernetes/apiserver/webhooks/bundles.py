"""TLS towards servers that a caBundle of an object vouches for."""

from __future__ import annotations

import base64
import binascii
import ssl


def client_tls(bundle: str | None) -> ssl.SSLContext:
    """Trusts whom the bundle names, or whom the machine trusts. Raises ValueError with upstream's words."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Go: whatever is in the bundle is trusted
    if not bundle:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, binascii.Error, ValueError):
        raise ValueError("unable to load root certificates: unable to parse bytes as PEM block") from None
    return context
