"""`--tls-curve-preferences`: the key exchanges that a server of ours takes part in, by Go's numbers.

Python's `ssl` can set one curve, not several, so OpenSSL is called directly, as in `handshakes`. A list that cannot be
applied is refused: a server must not use a key exchange that was excluded. The order does not count, as in Go; ours is
Go's.
"""

from __future__ import annotations

import ctypes
import ssl
from collections.abc import Iterable
from typing import Final

from .tls_handshakes import native

NAMES: Final = {
    4588: "X25519MLKEM768",
    4587: "SecP256r1MLKEM768",
    4589: "SecP384r1MLKEM1024",
    29: "X25519",
    23: "P-256",
    24: "P-384",
    25: "P-521",
}
"""By the numbers of Go's `crypto/tls`, which are those on the wire; OpenSSL's names, in Go's order."""

_LARGEST = 65535
_SET_GROUPS_LIST = 92  # OpenSSL's SSL_CTRL_SET_GROUPS_LIST


def check(curves: Iterable[int]) -> list[str]:
    """Validate a list of curves; the first error only, as upstream."""
    seen: set[int] = set()
    for curve in curves:
        if not 0 < curve <= _LARGEST:
            return [f"curve preference {curve} is out of range (must be 1-{_LARGEST})"]
        if curve in seen:
            return [f"duplicate curve preference {curve}"]
        if curve not in NAMES:
            return [f"curve preference {curve} is not supported by the current Go version"]
        seen.add(curve)
    return []


def restrict(context: ssl.SSLContext, curves: Iterable[int]) -> None:
    """Let a context use these key exchanges and no others. Raises ValueError if that is not possible."""
    wanted = set(curves)
    names = [name for number, name in NAMES.items() if number in wanted]
    if not names:
        return
    found = native(context)
    if found is None:
        raise ValueError("--tls-curve-preferences: the OpenSSL of this Python cannot set curves")
    library, pointer = found
    library.SSL_CTX_ctrl.restype = ctypes.c_long
    library.SSL_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_char_p]
    if library.SSL_CTX_ctrl(pointer, _SET_GROUPS_LIST, 0, ":".join(names).encode()) != 1:
        library.ERR_clear_error()
        raise ValueError(f"--tls-curve-preferences: {ssl.OPENSSL_VERSION} does not have all of {', '.join(names)}")
