"""An untrusted or expired client certificate is a bad credential and no reason to close the connection.

OpenSSL ends a handshake when the certificate does not verify, unless a callback says otherwise, and Python's `ssl` has
no way to give it one. Upstream answers such a client, with 401 if it has nothing better to show. So the callback is
given to OpenSSL directly, through the library that `ssl` itself is linked to. It lets every handshake go on and notes
which failed; `unverified` tells that once, when the connection is there. Who is not sure that a certificate was
verified verifies it again (`authn.x509`), so a note too many costs time and a note is never missing: they are made
before the handshake can end.

Where the library cannot be reached that way (a Python with OpenSSL built in), handshakes fail as they did.
"""

from __future__ import annotations

import ctypes
import ssl
import sys
from typing import Any

_VERIFY_PEER = 1  # OpenSSL's SSL_VERIFY_PEER
_APP_DATA = 0  # the index at which Python keeps its own object of a connection

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
_MOST = 4096  # handshakes under way
_failed: set[int] = set()
"""Connections (addresses of Python's objects) in whose handshakes a certificate did not verify."""


def unverified(tls: Any) -> bool:
    """Whether the certificate of a connection failed to verify in its handshake; to be asked once, right after it."""
    place = id(tls._sslobj)
    if place in _failed:
        _failed.discard(place)
        return True
    return False


def be_patient(context: ssl.SSLContext) -> bool:
    """Let handshakes with this context go on whatever certificate the client has; tells whether that is possible."""
    found = native(context)
    if found is None:
        return False
    library, pointer = found
    library.SSL_CTX_set_verify(pointer, _VERIFY_PEER, _callback)
    return True


def native(context: ssl.SSLContext) -> tuple[ctypes.CDLL, ctypes.c_void_p] | None:
    """OpenSSL and what is a context to it; None where it cannot be reached."""
    library = _library()
    if library is None:
        return None
    # The first field behind the head of Python's object. That it is a context is seen before anything is changed.
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    if library.SSL_CTX_get_options(pointer) & 0xFFFFFFFF != context.options & 0xFFFFFFFF:
        return None
    return library, pointer


_loaded: list[ctypes.CDLL | None] = []


def _library() -> ctypes.CDLL | None:
    if not _loaded:
        _loaded.append(_load())
    return _loaded[0]


def _load() -> ctypes.CDLL | None:
    import _ssl

    file = getattr(_ssl, "__file__", None)
    if sys.implementation.name != "cpython" or hasattr(sys, "getobjects") or file is None:
        return None
    try:
        library = ctypes.CDLL(file)  # finds what the module is linked to as well
        library.SSL_CTX_get_options.restype = ctypes.c_uint64
        library.SSL_CTX_get_options.argtypes = [ctypes.c_void_p]
        library.SSL_CTX_set_verify.restype = None
        library.SSL_CTX_set_verify.argtypes = [ctypes.c_void_p, ctypes.c_int, _Callback]
        library.SSL_get_ex_data_X509_STORE_CTX_idx.restype = ctypes.c_int
        for getter in (library.SSL_get_ex_data, library.X509_STORE_CTX_get_ex_data):
            getter.restype = ctypes.c_void_p
            getter.argtypes = [ctypes.c_void_p, ctypes.c_int]
    except (OSError, AttributeError):
        return None
    return library


def _judge(verified: int, store: int) -> int:
    """Called by OpenSSL for each certificate of a chain, and for each problem."""
    if not verified:
        library = _loaded[0]
        assert library is not None
        connection = library.X509_STORE_CTX_get_ex_data(store, library.SSL_get_ex_data_X509_STORE_CTX_idx())
        place = library.SSL_get_ex_data(connection, _APP_DATA)
        if not place:
            return 0
        if len(_failed) >= _MOST:  # of connections that ended before they were looked up
            _failed.clear()
        _failed.add(place)
    return 1


_callback = _Callback(_judge)
