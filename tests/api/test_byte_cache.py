"""Parts of objects that are equal are worked out once; what differs is never confused."""

from __future__ import annotations

from pybernetes.api.byte_cache import LONGEST, MOST, Remembered
from pybernetes.api.core.v1 import Container, PodSpec


def spec(image: str) -> PodSpec:
    return PodSpec(containers=[Container(name="c", image=image)])


def test_equal_parts_are_asked_once_and_different_ones_apart() -> None:
    asked: list[str] = []

    def image(part: PodSpec) -> str | None:
        assert part.containers
        asked.append(part.containers[0].image or "")
        return asked[-1] or None

    remembered = Remembered(image)
    assert [remembered(spec(each)) for each in ("a", "b", "a", "b", "a")] == ["a", "b", "a", "b", "a"]
    assert asked == ["a", "b"]


def test_none_is_asked_again() -> None:
    asked: list[int] = []
    remembered: Remembered[str] = Remembered(lambda part: asked.append(1))
    assert remembered(spec("a")) is remembered(spec("a")) is None
    assert len(asked) == 2


def test_memory_is_bounded() -> None:
    remembered = Remembered(lambda part: "known")
    for number in range(MOST + 50):
        remembered(spec(str(number)))
    remembered(spec("x" * LONGEST))
    assert len(remembered._known) == MOST
    assert all(len(key) <= LONGEST for key in remembered._known)
