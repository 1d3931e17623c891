"""One `fdatasync` after another by Linux's AIO (since 4.18), where io_uring (`uring`) is missing or forbidden."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_NUMBERS = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""io_setup, io_destroy, io_getevents, io_submit by machine."""
_IOCB = "<QIIHhIQQqQII"  # data, key, rw_flags, opcode, priority, file, buffer, bytes, offset, reserved, flags, resfd
_FDSYNC = 3
_RESFD = 1
_EVENT = "<QQqq"  # data, iocb, result, result2


class Aio:
    """Syncs one file. Raises OSError where the kernel has no such thing."""

    def __init__(self, file: int, told: int) -> None:
        """`told`: an eventfd that counts syncs that are done."""
        numbers = _NUMBERS.get(platform.machine())
        if numbers is None:
            raise OSError(errno.ENOSYS, "AIO of this machine is not known")
        # Calls that return at once need not give up the GIL, hence PyDLL.
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._setup, self._destroy, self._getevents, self._submit = map(ctypes.c_long, numbers)
        self._context = ctypes.c_ulong(0)
        if self._call(self._setup, ctypes.c_long(1), ctypes.byref(self._context)) < 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        request = struct.pack(_IOCB, 0, 0, 0, _FDSYNC, 0, file, 0, 0, 0, 0, _RESFD, told)
        self._request = ctypes.create_string_buffer(request, len(request))
        self._requests = (ctypes.c_void_p * 1)(ctypes.addressof(self._request))
        self._event = ctypes.create_string_buffer(struct.calcsize(_EVENT))
        self._one = ctypes.c_long(1)

    def ask(self) -> None:
        """Begin a sync. Raises OSError."""
        if self._call(self._submit, self._context, self._one, self._requests) != 1:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def collect(self) -> None:
        """The outcome of the sync, which is done. Raises OSError if the disk refused."""
        while self._call(self._getevents, self._context, self._one, self._one, self._event, None) != 1:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))
        result = struct.unpack(_EVENT, self._event.raw)[2]
        if result < 0:
            raise OSError(-result, os.strerror(-result))

    def close(self) -> None:
        """Free everything; nothing is under way."""
        self._call(self._destroy, self._context)
