"""Remembers what was found out about a part of an object, by its bytes.

Controllers make the same pod again and again: hundreds of specs that are equal to the last byte. What depends on such
a spec alone (is it valid? who owns what in it?) is worked out once. Encoding the part to look it up costs a few
microseconds, which is what an unknown part pays on top.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode

MOST = 512  # parts remembered; the oldest goes first
LONGEST = 16 << 10  # bytes of a part worth remembering


class Remembered(Generic[T]):
    """A function of a part of an object, asked once for each distinct part."""

    def __init__(self, work_out: Callable[[Any], T | None], alike: Callable[[bytes], bytes] | None = None) -> None:
        """`work_out` answers None for what must not be remembered; `alike` blots out what makes no difference."""
        self._work_out = work_out
        self._alike = alike
        self._known: dict[bytes, T] = {}

    def recall(self, part: Any) -> T | None:
        """The cached result for an equal part."""
        return self._known.get(self._key(part))

    def __call__(self, part: Any) -> T | None:
        key = self._key(part)
        found = self._known.get(key)
        if found is None:
            found = self._work_out(part)
            if found is not None and len(key) <= LONGEST:
                if len(self._known) >= MOST:
                    with suppress(RuntimeError):  # another thread has changed it between the two steps
                        self._known.pop(next(iter(self._known)), None)
                self._known[key] = found
        return found

    def _key(self, part: Any) -> bytes:
        encoded = _encode(part)
        return encoded if self._alike is None else self._alike(encoded)
