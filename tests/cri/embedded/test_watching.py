"""The launcher's event loop: blocked descriptors are not read, a failing handler ends no other."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

import pytest

from pybernetes.cri.embedded.watching import Watching


class Pipes:
    """Pipes that are watched; `read` has what came, by pipe."""

    def __init__(self) -> None:
        self.failed: list[int] = []
        self.watching = Watching(self.failed.append)
        self.read: dict[int, bytes] = {}
        self.ends: list[int] = []

    def open(self) -> tuple[int, int]:
        """A new one: where it is read, and where it is written."""
        source, target = os.pipe()
        self.ends += [source, target]
        self.read[source] = b""
        self.watching.add(source, lambda: self._take(source))
        return source, target

    def _take(self, source: int) -> None:
        self.read[source] += os.read(source, 100)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    for each in made.ends:
        os.close(each)


def test_what_comes_is_read_and_nothing_is_waited_for_no_longer_than_said(pipes: Pipes) -> None:
    source, target = pipes.open()
    assert not pipes.watching.wait(0)
    os.write(target, b"a")
    assert pipes.watching.wait(10)
    assert pipes.read[source] == b"a"


def test_who_is_held_up_is_not_read_until_it_goes_on_and_nothing_is_lost(pipes: Pipes) -> None:
    source, target = pipes.open()
    pipes.watching.hold_up(source)
    pipes.watching.hold_up(source)  # once is enough
    os.write(target, b"a")
    assert not pipes.watching.wait(0)
    pipes.watching.go_on(source)
    pipes.watching.go_on(source)
    assert pipes.watching.wait(10)
    assert (pipes.read[source], pipes.failed) == (b"a", [])


def test_who_is_removed_is_forgotten_also_while_it_is_held_up(pipes: Pipes) -> None:
    for held in (False, True):
        source, target = pipes.open()
        if held:
            pipes.watching.hold_up(source)
        pipes.watching.remove(source)
        pipes.watching.go_on(source)
        os.write(target, b"a")
        assert not pipes.watching.wait(0)
        assert pipes.watching.handler(source) is None


def test_who_waits_for_something_else_is_asked_about_that_alone(pipes: Pipes) -> None:
    source, target = pipes.open()
    told: list[str] = []
    pipes.watching.add_for(target, select.EPOLLOUT, lambda: told.append("room"))
    assert pipes.watching.wait(10)
    pipes.watching.add_for(target, 0, lambda: told.append("never"))
    assert not pipes.watching.wait(0)
    assert (told, pipes.read[source]) == (["room"], b"")


def test_a_failure_is_reported_and_ends_nothing_else(pipes: Pipes, capsys: pytest.CaptureFixture[str]) -> None:
    bad, target = pipes.open()
    pipes.watching.add_for(bad, select.EPOLLIN, lambda: 1 // 0)
    good, other = pipes.open()
    os.write(target, b"a")
    os.write(other, b"b")
    while not pipes.read[good]:
        assert pipes.watching.wait(10)
    assert set(pipes.failed) == {bad}
    assert "ZeroDivisionError" in capsys.readouterr().err
