"""Which reads are noted in a file's access time."""

from __future__ import annotations

import pytest

from pybernetes.objectfs.access_times import DAY, SECOND, is_due
from pybernetes.objectfs.meta.records import Attributes

NOW = 100 * DAY


@pytest.mark.parametrize(
    ("mode", "atime", "changed", "due"),
    [
        ("relatime", NOW - 10, NOW - 5, True),
        ("relatime", NOW - 5, NOW - 10, False),
        ("relatime", NOW - DAY, NOW - 2 * DAY, True),
        ("relatime", NOW - 5, NOW + DAY, False),  # a change dated ahead of this clock: once a second, not every read
        ("relatime", NOW - SECOND, NOW + DAY, True),
        ("strictatime", NOW - SECOND, 0, True),
        ("strictatime", NOW - 5, 0, False),
    ],
)
def test_a_read_is_noted(mode: str, atime: int, changed: int, due: bool) -> None:
    attributes = Attributes(2, 0o100644, 0, 0, now=changed, parent=1)
    attributes.atime = atime
    assert is_due(mode, attributes, NOW) is due
