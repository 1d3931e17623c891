"""Counts the work of a piece of code without a clock: executed lines, and comparisons of texts and numbers.

Lines are counted for each function. What C code does for one line (`value in some_list`, `==` of two objects, sorting)
is seen by the comparisons: `countable` replaces texts and numbers by ones that count how often they are compared, and
for whom. The same code on the same input always counts the same.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import msgspec
import pytest

from pybernetes.api.base import Struct

Work = Counter[CodeType]

_comparisons: Work = Counter()


def _compared() -> None:
    frame: FrameType | None = sys._getframe(2)
    if frame is not None:
        _comparisons[frame.f_code] += 1


class CountedText(str):
    """Text that counts its comparisons."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _compared()
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        _compared()
        return str.__ne__(self, other)

    def __lt__(self, other: str) -> bool:
        _compared()
        return str.__lt__(self, other)

    def __str__(self) -> str:
        return str.__str__(self)


class CountedNumber(int):
    """A number that counts its comparisons."""

    __slots__ = ()
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        _compared()
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        _compared()
        return int.__ne__(self, other)


def countable(value: Any) -> Any:
    """The same value with texts and numbers that count; structs are changed in place."""
    kind = type(value)
    if kind is str:
        return CountedText(value)
    if kind is int:
        return CountedNumber(value)
    if kind is list:
        return [countable(each) for each in value]
    if kind is dict:
        return {countable(key): countable(each) for key, each in value.items()}
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            setattr(value, name, countable(getattr(value, name)))
    return value


def plain(value: object) -> Any:
    """For the encoder, which takes no subclass of text or number."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"cannot encode {type(value)}")


def let_encode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the encoders of the project take values that count."""

    def lenient(encoder: msgspec.json.Encoder) -> msgspec.json.Encoder:
        return msgspec.json.Encoder(enc_hook=plain, order=encoder.order)

    usual = msgspec.json.Encoder(enc_hook=plain)
    monkeypatch.setattr(msgspec.json, "encode", lambda value, **_: usual.encode(value))
    for module in [each for name, each in sys.modules.items() if name.startswith("pybernetes.")]:
        for name, value in list(vars(module).items()):
            if isinstance(value, msgspec.json.Encoder):
                monkeypatch.setattr(module, name, lenient(value))
            elif isinstance(owner := getattr(value, "__self__", None), msgspec.json.Encoder):
                monkeypatch.setattr(module, name, getattr(lenient(owner), value.__name__))


def work(step: Callable[[], object]) -> tuple[Work, Work]:
    """What a step did: lines and comparisons by function."""
    with counted() as found:
        step()
    return found


async def work_of(step: Coroutine[Any, Any, object]) -> tuple[Work, Work]:
    """The same for a coroutine, and whatever else the event loop does meanwhile."""
    with counted() as found:
        await step
    return found


@contextmanager
def counted() -> Iterator[tuple[Work, Work]]:
    """Counts what is done inside."""
    lines: Work = Counter()
    comparisons: Work = Counter()

    def local(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            lines[frame.f_code] += 1
        return local

    def entered(frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if "pybernetes" not in name and not name.startswith("<"):
            return None
        lines[frame.f_code] += 1
        return local

    _comparisons.clear()
    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield lines, comparisons
    finally:
        sys.settrace(before)
        comparisons.update(_comparisons)


TOLERANCE = {"lines": 2.5, "comparisons": 3.2}
"""How much faster than the input work may grow: n log n, small sizes, and a step that only the larger one takes (an
apply that goes on after a refusal). With four times the input n^2 is 4 times."""


def fast_growing(small: tuple[Work, Work], large: tuple[Work, Work], factor: float, ignored: int) -> list[str]:
    """Functions whose work grew faster than n log n when the input grew by a factor; little work is ignored."""
    found: list[str] = []
    for what, before, after in zip(TOLERANCE, small, large, strict=True):
        for code, count in after.items():
            started_late = not before[code] and count < 10 * ignored  # at the larger size only, such as a limit's error
            if count > ignored and not started_late and count > TOLERANCE[what] * factor * before[code]:
                place = f"{code.co_filename.rpartition('pybernetes/')[2]}:{code.co_firstlineno} {code.co_name}"
                found.append(f"{place}: {before[code]} -> {count} {what}")
    return found
