"""One-time keys and the session tokens that the page gets for them.

A key is valid for one exchange and for KEY_LIFETIME; a token until it has been unused for SESSION_LIFETIME. Tokens are
not cookies: a browser sends cookies to every port of a host, also to what a port-forward serves, while a token is known
to the page's own scripts alone. Time comes from the caller.
"""

from __future__ import annotations

import hashlib
import secrets
import threading

KEY_LIFETIME = 300.0
SESSION_LIFETIME = 12 * 3600.0
MAX_KEYS = 16
MAX_SESSIONS = 64


class Sessions:
    """The keys and tokens of one server; only their digests are kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, float] = {}
        """Digest of a key -> when it ends; at most MAX_KEYS, the oldest go first."""
        self._tokens: dict[str, float] = {}
        """Digest of a token -> when it ends unless it is used; at most MAX_SESSIONS, the oldest go first."""

    def new_key(self, now: float) -> str:
        """A key for one exchange."""
        return self._add(self._keys, now + KEY_LIFETIME, MAX_KEYS)

    def exchange(self, key: str, now: float) -> str | None:
        """The token for a key, which is used up; None if the key is unknown, used or too old."""
        with self._lock:
            ends = self._keys.pop(_digest(key), 0.0)
        return self._add(self._tokens, now + SESSION_LIFETIME, MAX_SESSIONS) if now < ends else None

    def valid(self, token: str, now: float) -> bool:
        """Whether a token is of a session; its use prolongs the session."""
        digest = _digest(token)
        with self._lock:
            if now >= self._tokens.pop(digest, 0.0):
                return False
            self._tokens[digest] = now + SESSION_LIFETIME  # at the end: the least used ones are first
            return True

    def _add(self, kept: dict[str, float], ends: float, most: int) -> str:
        made = secrets.token_urlsafe(32)
        with self._lock:
            while len(kept) >= most:
                del kept[next(iter(kept))]
            kept[_digest(made)] = ends
        return made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
