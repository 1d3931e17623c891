"""One receiver of an informer's events, isolated from the others.

An exception in a handler is logged and counted, and costs no other handler its events. The event is not lost either:
the object's key is kept, and its present state is delivered again with a growing delay until the handler takes it. An
event of the same object that comes meanwhile is delivered at once, as the difference to what the handler last took.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pybernetes.api.base import Kind
from pybernetes.component import tasks

from .backoff import ItemBackoff
from .clock import Clock, Timer
from .keys import Key, key_of

FIRST_RETRY, LAST_RETRY = 1.0, 300.0
"""Seconds from a handler's failure to the next delivery: the first, and the most."""
FAILURES = "informer handlers"
"""The name under which failures are counted for `/metrics`."""
K = TypeVar("K", bound=Kind)
log = logging.getLogger(__name__)


class Cache(Protocol[K]):
    """The part of an informer that a handler uses."""

    name: str

    @property
    def clock(self) -> Clock:
        """Where the time comes from."""
        ...

    def get(self, key: Key) -> K | None:
        """The object as it is now."""
        ...

    def forget_handler(self, handler: Handler[K]) -> None:
        """Deliver no more to this handler."""
        ...


@dataclass(slots=True)
class _Missed(Generic[K]):
    """An object whose last event the handler failed on."""

    taken: K | None
    """The state that the handler took before; None if it did not know the object."""
    last: K
    """The state that it failed on."""
    timer: Timer | None = None


class Handler(Generic[K]):
    """A registered handler and its filter. `remove()` ends it.

    `_missed` holds every object whose last event the handler failed on, each with a timer that delivers it again.
    """

    def __init__(
        self,
        cache: Cache[K],
        on_add: Callable[[K], None] | None,
        on_update: Callable[[K, K], None] | None,
        on_delete: Callable[[K], None] | None,
        on_vanished: Callable[[K], None] | None,
    ) -> None:
        self._cache = cache
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete
        self._on_vanished = on_vanished or on_delete
        self._missed: dict[Key, _Missed[K]] = {}
        self._backoff: ItemBackoff[Key] = ItemBackoff(FIRST_RETRY, LAST_RETRY)
        self.timer: Timer | None = None

    def added(self, obj: K) -> None:
        """An object came."""
        if self._on_add and not self._overtakes(obj):
            try:
                self._on_add(obj)
            except Exception as error:
                self.failed(None, obj, error)

    def updated(self, old: K, new: K) -> None:
        """An object changed."""
        if self._on_update and not self._overtakes(new):
            try:
                self._on_update(old, new)
            except Exception as error:
                self.failed(old, new, error)

    def deleted(self, obj: K) -> None:
        """An object went; its final state."""
        if self._on_delete and not self._overtakes(obj):
            try:
                self._on_delete(obj)
            except Exception as error:
                self.failed(obj, obj, error)

    def vanished(self, obj: K) -> None:
        """An object went unseen; the last state known."""
        if self._on_vanished and not self._overtakes(obj):
            try:
                self._on_vanished(obj)
            except Exception as error:
                self.failed(obj, obj, error)

    def remove(self) -> None:
        """Hear no more."""
        self._cache.forget_handler(self)
        if self.timer:
            self.timer.cancel()
        for missed in self._missed.values():
            if missed.timer:
                missed.timer.cancel()
        self._missed.clear()

    def failed(self, taken: K | None, obj: K, error: Exception) -> None:
        """The handler could not take an event of this object: deliver the object's state again, later."""
        key = key_of(obj)
        delay = self._backoff.when(key)
        tasks.failures[FAILURES] += 1
        log.error(
            "a handler of %s failed on %s, it is delivered again in %g s",
            self._cache.name,
            key,
            delay,
            exc_info=error,
        )
        missed = self._missed.get(key)
        if missed is None:
            missed = self._missed[key] = _Missed(taken, obj)
        missed.last = obj
        if missed.timer:
            missed.timer.cancel()
        missed.timer = self._cache.clock.call_later(delay, self._deliver, key)

    def _overtakes(self, obj: K) -> bool:
        """Whether the event was delivered together with what was missed of the same object."""
        if not self._missed:
            return False
        key = key_of(obj)
        missed = self._missed.get(key)
        if missed is None:
            return False
        missed.last = obj
        self._deliver(key)
        return True

    def _deliver(self, key: Key) -> None:
        missed = self._missed[key]
        if missed.timer:
            missed.timer.cancel()
        now = self._cache.get(key)
        try:
            if now is None:
                if self._on_vanished:
                    self._on_vanished(missed.last)
            elif missed.taken is None:
                if self._on_add:
                    self._on_add(now)
            elif self._on_update:
                self._on_update(missed.taken, now)
        except Exception as error:
            self.failed(missed.taken, missed.last if now is None else now, error)
        else:
            del self._missed[key]
            self._backoff.forget(key)
