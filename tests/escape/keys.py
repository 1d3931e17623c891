"""The kernel's keyrings, by system calls that Python has no functions for."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_ADD_KEY, _KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
_SESSION_KEYRING = -3
_JOIN_SESSION_KEYRING, _SETPERM = 1, 5
_POSSESSOR_ALONE = 0x3F000000


def keep_secret(name: str) -> None:
    """Put a key into a new session keyring of this process; only processes that inherit the keyring see it."""
    long = ctypes.c_long
    _check(_libc.syscall(long(_KEYCTL), long(_JOIN_SESSION_KEYRING), None))
    secret = b"secret"
    key = _libc.syscall(
        long(_ADD_KEY), b"user", name.encode(), secret, ctypes.c_size_t(len(secret)), long(_SESSION_KEYRING)
    )
    _check(_libc.syscall(long(_KEYCTL), long(_SETPERM), long(_check(key)), long(_POSSESSOR_ALONE)))


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
