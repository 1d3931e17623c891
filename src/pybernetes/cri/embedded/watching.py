"""The launcher's event loop: one epoll, and a function for each descriptor. Next to no imports."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable

Handler = Callable[[], object]


class Watching:
    """Descriptors and what is to be done when something happens to them. `failed` hears of those that raised."""

    def __init__(self, failed: Callable[[int], None]) -> None:
        self._failed = failed
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._held_up: set[int] = set()
        """Streams that are not read now, because an attached client has not taken what came before."""

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for anything and does what is to be done then; whether anything came.

        An error is logged and ends nothing else.
        """
        happened = self._epoll.poll(seconds)
        for descriptor, _ in happened:
            handler = self._handlers.get(descriptor)
            if handler is None:
                continue
            try:
                handler()
            except Exception:
                sys.excepthook(*sys.exc_info())
                self._failed(descriptor)
        return bool(happened)

    def add(self, descriptor: int, handler: Handler) -> None:
        """Calls the function whenever there is something to read, or the end."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, select.EPOLLIN)

    def add_for(self, descriptor: int, mask: int, handler: Handler) -> None:
        """Calls the function whenever something of a mask happens, in place of what was watched before."""
        if descriptor in self._handlers:
            self._epoll.modify(descriptor, mask)
        else:
            self._epoll.register(descriptor, mask)
        self._handlers[descriptor] = handler

    def remove(self, descriptor: int) -> None:
        """Looks at it no longer; before it is closed."""
        if self._handlers.pop(descriptor, None) is not None and descriptor not in self._held_up:
            self._epoll.unregister(descriptor)
        self._held_up.discard(descriptor)

    def hold_up(self, descriptor: int) -> None:
        """Looks away for a while."""
        if descriptor in self._handlers and descriptor not in self._held_up:
            self._held_up.add(descriptor)
            self._epoll.unregister(descriptor)  # masking is not enough: epoll would report a hangup again and again

    def go_on(self, descriptor: int) -> None:
        """Looks at it again, if it was held up."""
        if descriptor in self._held_up:
            self._held_up.discard(descriptor)
            self._epoll.register(descriptor, select.EPOLLIN)

    def handler(self, descriptor: int) -> Handler | None:
        """The handler of a descriptor."""
        return self._handlers.get(descriptor)
