"""As whom we come to an extension server, and for whom we ask: a client certificate, and upstream's headers."""

from __future__ import annotations

import ssl
from pathlib import Path

from pybernetes.net.watched_files import Watched

from ..user import User
from ..webhooks.bundles import client_tls

AGGREGATOR = User("system:kube-aggregator", groups=("system:masters",))
"""The user of the aggregator's own requests."""

_TOKEN = frozenset("!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")  # and not %


class ProxyClient:
    """The certificate of --proxy-client-cert-file, read again when it changes; `generation` counts that."""

    def __init__(self, certificate: Path | None, key: Path | None) -> None:
        self._files = (certificate, key) if certificate and key else None
        self._watched = Watched(self._files) if self._files else None
        self.generation = 0

    def refresh(self) -> None:
        """Look whether there is another."""
        if self._watched is not None and self._watched.changed():
            self.generation += 1

    def context(self, bundle: str | None, *, insecure: bool) -> ssl.SSLContext:
        """TLS for a server whose certificate this bundle verifies, or for any server without one. Raises ValueError
        with upstream's words."""
        context = client_tls(None if insecure else bundle)
        if insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self._files is not None:
            try:
                context.load_cert_chain(*self._files)
            except (OSError, ssl.SSLError) as error:
                raise ValueError(f"unable to load the proxy's client certificate: {error}") from error
        return context


def user_headers(user: User) -> list[tuple[str, str]]:
    """Headers that say who asks; their values are UTF-8, which is written as Latin-1 like all headers."""
    headers = [("X-Remote-User", user.name)]
    if user.uid:
        headers.append(("X-Remote-Uid", user.uid))
    headers += [("X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra.items():
        headers += [(f"X-Remote-Extra-{_escaped(key)}", value) for value in values]
    return [(name, value.encode().decode("latin-1")) for name, value in headers]


def _escaped(key: str) -> str:
    """A key in the name of a header, in which % escapes what headers cannot hold."""
    return "".join(chr(byte) if chr(byte) in _TOKEN else f"%{byte:02X}" for byte in key.encode())
