"""Copies of a container's output for clients that are attached to it, in the launcher.

A client that reads too slowly holds up the stream, and so in the end the container, as with other runtimes: what a
client is shown has no gaps. A client that is gone is noticed by its pipe, even if the container never writes.
Imported by the launcher: next to no imports.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

Watch = Callable[[int, int, Callable[[], None]], None]
"""Calls a function whenever something of a mask happens to a descriptor, in place of what was watched before."""


class Attached:
    """One client's copy of one stream."""

    def __init__(
        self, descriptor: int, watch: Watch, unwatch: Callable[[int], None], changed: Callable[[], None]
    ) -> None:
        """`changed` is called when it has room again, or has gone."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._watch = watch
        self._unwatch = unwatch
        self._changed = changed
        self._waiting = bytearray()
        self._finished = False
        self.gone = False
        watch(descriptor, 0, self._happened)  # epoll always reports errors, such as the other end's closing

    @property
    def full(self) -> bool:
        """Whether the stream has to wait for it."""
        return bool(self._waiting)

    def write(self, data: bytes) -> None:
        """Sends; what the client cannot take yet waits."""
        if self.gone:
            return
        self._waiting += data
        self._flush()
        if self._waiting:
            self._watch(self._descriptor, select.EPOLLOUT, self._happened)

    def finish(self) -> None:
        """The stream has ended: closes as soon as the client has taken everything."""
        self._finished = True
        if not self._waiting:
            self._close()

    def _happened(self) -> None:
        if not self._waiting:
            self._close()  # nothing but an error was waited for
            return
        self._flush()
        if self._waiting or self.gone:
            return
        if self._finished:
            self._close()
            return
        self._watch(self._descriptor, 0, self._happened)
        self._changed()

    def _flush(self) -> None:
        try:
            while self._waiting:
                del self._waiting[: os.write(self._descriptor, self._waiting[:65536])]
        except BlockingIOError:
            pass
        except OSError:
            self._close()

    def _close(self) -> None:
        if not self.gone:
            self.gone = True
            self._waiting.clear()
            self._unwatch(self._descriptor)
            os.close(self._descriptor)
            self._changed()
